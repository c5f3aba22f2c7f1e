#include "aten/record_calls_checks.h"

#include <torch/csrc/autograd/node.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <typeinfo>
#include <unordered_set>

#include "assay/error.h"

namespace assay::aten {

namespace {

using at::Tensor;

constexpr unsigned char kPattern = 0x5b;

void add_histories(const Value& value, std::vector<const torch::autograd::Node*>& nodes) {
  if (value.is_tensor()) {
    if (value.leaf.toTensor().defined()) nodes.push_back(value.leaf.toTensor().grad_fn().get());
    return;
  }
  if (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple())) {
    for (const Value& item : unpack(value)) add_histories(item, nodes);
  }
  for (const Value& item : value.items) add_histories(item, nodes);
}

bool is_custom_function(const torch::autograd::Node& node) {
  const std::string_view type = typeid(node).name();
  return type.find("CppNode") != std::string_view::npos ||
         type.find("PyNode") != std::string_view::npos;
}

}  // namespace

void write_pattern(const Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  if (storage.nbytes() != 0) std::memset(storage.mutable_data(), kPattern, storage.nbytes());
}

bool has_pattern(const Tensor& tensor) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.storage().data());
  const auto count = static_cast<std::ptrdiff_t>(tensor.storage().nbytes());
  return std::all_of(bytes, bytes + count, [](unsigned char byte) { return byte == kPattern; });
}

void refuse_custom_functions(const Value& result,
                             const std::vector<c10::intrusive_ptr<torch::autograd::Node>>& known) {
  std::unordered_set<const torch::autograd::Node*> seen = {nullptr};
  for (const auto& history : known) seen.insert(history.get());
  std::vector<const torch::autograd::Node*> todo;
  add_histories(result, todo);
  while (!todo.empty()) {
    const torch::autograd::Node* node = todo.back();
    todo.pop_back();
    if (!seen.insert(node).second) continue;
    if (is_custom_function(*node)) {
      throw TraceError("the program uses the custom autograd function '" + node->name() +
                           "', whose backward a graph cannot record",
                       "call it outside of the compiled function");
    }
    for (const auto& edge : node->next_edges()) todo.push_back(edge.function.get());
  }
}

}  // namespace assay::aten
