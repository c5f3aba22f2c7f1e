// The simplest inputs at once: one element each, made up when the file is loaded, contiguous,
// without gradients. For most faults any numbers will do, and then `values`, `strides` and `shapes`
// have nothing left to try.
#include <algorithm>

#include "graph/rewrite.h"
#include "reduce/inputs.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::int64_t smallest(std::int64_t size) { return std::min<std::int64_t>(size, 1); }

std::optional<Candidate> propose_simplest(const Candidate& program, std::size_t, std::size_t,
                                          repro::ContentStore&) {
  Edit edit(program);
  std::set<std::int64_t> replaced;
  bool has_changed = false;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    auto* tensor = std::get_if<repro::TensorInput>(&edit.program().inputs[i]);
    if (tensor == nullptr) continue;
    graph::TensorMeta meta = tensor->meta;
    meta.sizes.clear();
    for (std::int64_t size : sizes_of(*tensor)) {
      if (size > 1) replaced.insert(size);
      meta.sizes.emplace_back(smallest(size));
    }
    has_changed |= meta.sizes != tensor->meta.sizes || tensor->meta.requires_grad ||
                   !program.storages[tensor->storage].hash.empty();
    tensor->is_leaf = true;
    tensor->meta.requires_grad = false;
    set_made_up(edit.program(), i, std::move(meta));
  }
  if (!has_changed) return std::nullopt;
  map_sizes(edit.graph(), [&](std::int64_t number) {
    return replaced.contains(number) ? std::int64_t{1} : number;
  });
  return edit.finish(false);
}

}  // namespace

Proposals passes::simplest() { return {&one_round, &one_proposal, &propose_simplest}; }

}  // namespace assay::reduce
