#include "sandbox/origin.h"

namespace assay::sandbox {

namespace {

const graph::Node* find_call(const graph::Graph& graph, std::string_view name) {
  const graph::Node* node = graph.find(name);
  return node != nullptr && node->is_call() ? node : nullptr;
}

const graph::Node* follow(const graph::Graph& graph, const graph::Provenance& provenance) {
  for (const graph::NodeId id : provenance.nodes) {
    const graph::RecordedStage::Entry* entry = provenance.stage->find(id);
    if (entry == nullptr) continue;
    const bool is_ours = provenance.stage->graph() == graph.identity();
    const graph::Node* found = is_ours ? find_call(graph, entry->name) : nullptr;
    // A copy of the graph may have nodes of its own, put in beside those they were made of.
    if (found == nullptr) found = follow(graph, entry->from);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

const graph::Node* find_origin(const graph::Graph& graph, std::string_view name,
                               const graph::Provenance& provenance) {
  // Names in a text's comments are of a program that is not here.
  const bool is_first_stage = provenance.empty() || provenance.stage->is_from_text();
  return is_first_stage ? find_call(graph, name) : follow(graph, provenance);
}

}  // namespace assay::sandbox
