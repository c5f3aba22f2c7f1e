#include "autograd/extract.h"

#include <algorithm>
#include <unordered_map>

#include "assay/error.h"
#include "graph/copy_nodes.h"

namespace assay::autograd {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::Op;

namespace {

// Copies nodes into a later stage: each comes from the one it is a copy of.
class Extractor {
 public:
  Extractor(const Graph& original, Graph& copy)
      : stage_(graph::record_stage(original)), copier_(original, copy) {}

  bool has(const Node& node) const { return copier_.has(node); }
  Argument translate(const Argument& argument) const { return copier_.translate(argument); }

  void add_input(const Node& node) { finish(node, copier_.copy_as_input(node)); }

  void add(const Node& node) {
    if (node.op() == Op::placeholder) {
      throw InternalError("'" + node.name() + "' is needed, but is not an input of the new graph");
    }
    finish(node, copier_.copy(node));
  }

 private:
  void finish(const Node& node, Node& copy) const {
    internal_check(copy.name() == node.name(), "names of one graph stay unique in a part of it");
    copy.meta.provenance = {stage_, {node.id()}};
  }

  std::shared_ptr<const graph::RecordedStage> stage_;
  graph::NodeCopier copier_;
};

}  // namespace

std::unordered_set<const Node*> needed_nodes(const Extraction& extraction) {
  const std::unordered_set<const Node*> inputs(extraction.inputs.begin(), extraction.inputs.end());
  std::unordered_set<const Node*> needed;
  std::vector<const Node*> open(extraction.kept);
  const auto need = [&](const Node& node) { open.push_back(&node); };
  for (const Argument& output : extraction.outputs) output.for_each_node(need);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (needed.insert(node).second && !inputs.contains(node)) node->for_each_input(need);
  }
  return needed;
}

std::unique_ptr<Graph> extract(const Graph& original, const Extraction& extraction) {
  auto result = std::make_unique<Graph>(extraction.name);
  result->symbols() = original.symbols();
  Extractor extractor(original, *result);
  for (const Node* input : extraction.inputs) extractor.add_input(*input);

  const auto needed = needed_nodes(extraction);
  std::vector<const Node*> order;
  std::unordered_map<const Node*, std::size_t> position;
  for (const Node& node : original.nodes()) {
    if (!needed.contains(&node) || extractor.has(node)) continue;
    position.emplace(&node, order.size());
    order.push_back(&node);
  }
  // Copies what `open` needs and has not been copied yet, in the original's order.
  const auto add_with_inputs = [&](std::vector<const Node*> open) {
    std::vector<const Node*> missing;
    std::unordered_set<const Node*> seen;
    while (!open.empty()) {
      const Node* node = open.back();
      open.pop_back();
      if (extractor.has(*node) || !seen.insert(node).second) continue;
      missing.push_back(node);
      node->for_each_input([&](const Node& input) { open.push_back(&input); });
    }
    std::ranges::sort(missing, {}, [&](const Node* node) { return position.at(node); });
    for (const Node* node : missing) extractor.add(*node);
  };
  for (const Node* node : order) {
    if (!extraction.is_placed_late || !extraction.is_placed_late(*node)) add_with_inputs({node});
  }
  graph::Tuple outputs;
  for (const Argument& output : extraction.outputs) {
    output.for_each_node([&](const Node& node) { add_with_inputs({&node}); });
    outputs.items.push_back(extractor.translate(output));
  }
  Node& output = result->set_output(std::move(outputs));
  if (original.output() != nullptr) output.meta.stack = original.output()->meta.stack;
  return result;
}

}  // namespace assay::autograd
