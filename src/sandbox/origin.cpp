#include "sandbox/origin.h"

namespace assay::sandbox {

namespace {

const graph::Node* find_call(const graph::Graph& graph, std::string_view name) {
  while (!name.empty()) {
    const graph::Node* node = graph.find(name);
    if (node != nullptr) return node->is_call() ? node : nullptr;
    const std::size_t end = name.rfind('_');
    name = name.substr(0, end == std::string_view::npos ? 0 : end);
  }
  return nullptr;
}

}  // namespace

const graph::Node* find_origin(const graph::Graph& graph, std::string_view name,
                               const std::vector<std::string>& provenance) {
  for (const std::string& earlier : provenance) {
    if (const graph::Node* node = find_call(graph, earlier)) return node;
  }
  return find_call(graph, name);
}

}  // namespace assay::sandbox
