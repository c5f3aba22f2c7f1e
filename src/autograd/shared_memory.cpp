#include "autograd/shared_memory.h"

#include <algorithm>
#include <string>

#include "assay/error.h"
#include "aten/memory_overlap.h"

namespace assay::autograd {

std::vector<std::size_t> inputs_sharing_memory(const std::vector<at::Tensor>& inputs,
                                               std::size_t input) {
  std::vector<std::size_t> sharing;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_known = std::ranges::any_of(
        sharing, [&](std::size_t known) { return inputs[known].is_same(inputs[i]); });
    if (!is_known && inputs[i].storage().is_alias_of(inputs[input].storage())) sharing.push_back(i);
  }
  return sharing;
}

SharedMemory shared_memory(const std::vector<at::Tensor>& inputs,
                           const std::vector<std::size_t>& sharing) {
  const at::Tensor& first = inputs[sharing[0]];
  std::int64_t begin = first.storage_offset();
  std::int64_t end = begin;
  for (std::size_t index : sharing) {
    const at::Tensor& input = inputs[index];
    if (input.requires_grad() || input.scalar_type() != first.scalar_type()) {
      throw TraceError("inputs " + std::to_string(sharing[0]) + " and " +
                           std::to_string(sharing[1]) +
                           " share memory that the program changes in place, and one of them "
                           "requires a gradient or has another dtype",
                       "pass a clone of one of them");
    }
    begin = std::min(begin, input.storage_offset());
    end = std::max(end, input.storage_offset() + aten::extent_of(input));
  }
  return {begin - first.storage_offset(), end - begin};
}

}  // namespace assay::autograd
