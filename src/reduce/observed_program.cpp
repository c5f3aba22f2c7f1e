#include "reduce/observed_program.h"

#include <algorithm>

#include "graph/rewrite.h"
#include "reduce/bridge.h"
#include "reduce/edit.h"

namespace assay::reduce {

namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;

// Makes every tensor that a call computes a result.
std::vector<std::string> return_everything(const Candidate& program, Graph& graph) {
  std::vector<std::string> names;
  graph::Tuple results;
  for (Node& node : graph.nodes()) {
    if (!node.is_call() || !look_of(program, node)) continue;
    names.push_back(node.name());
    results.items.emplace_back(&node);
  }
  graph.output()->set_arguments({Argument(std::move(results))});
  return names;
}

// Gives every call inputs of its own.
class Separation {
 public:
  explicit Separation(const Candidate& program)
      : program_(program), result_(program), graph_(program.graph->clone()) {}

  std::optional<ObservedProgram> run() {
    for (const Atom& atom : atoms(*program_.graph)) separate(*atom.front());
    std::vector<std::string> results = return_everything(program_, *graph_);
    if (results.empty()) return std::nullopt;
    for (Node* placeholder : graph_->placeholders()) {
      if (placeholder->users().empty()) drop_input(result_, *graph_, *placeholder);
    }
    result_.graph = std::move(graph_);
    return ObservedProgram{std::move(result_), std::move(results), std::move(readers_)};
  }

 private:
  // Attributes, and what is not one tensor or a number, it reads as before.
  void separate(const Node& original) {
    Node& call = *graph_->find(original.name());
    std::map<const Node*, Argument> own;
    original.for_each_input([&](const Node& operand) {
      const Node* twin = graph_->find(operand.name());
      if (own.contains(twin) || operand.op() == graph::Op::get_attr) return;
      if (const auto made = own_input(original, operand)) own.emplace(twin, *made);
    });
    const auto replace = [&](Node& node) -> Argument {
      const auto found = own.find(&node);
      return found == own.end() ? &node : found->second;
    };
    graph::map_arguments(call,
                         [&](const Argument& argument) { return argument.map_nodes(replace); });
  }

  // A new input with the operand's value, or the number that it is.
  std::optional<Argument> own_input(const Node& call, const Node& operand) {
    const auto found = program_.values->find(operand.name());
    if (found == program_.values->end()) return std::nullopt;
    const RecordedValue& value = found->second;
    if (value.kind == RecordedValue::Kind::constant) return value.constant;
    if (value.kind != RecordedValue::Kind::tensor) return std::nullopt;
    repro::TensorInput described = value.tensor;
    repro::StorageSpec storage = value.storage;
    if (operand.op() == graph::Op::placeholder) {  // its contents are not recorded once more
      const auto all = program_.graph->placeholders();
      const auto position = std::ranges::find(all, &operand) - all.begin();
      described = std::get<repro::TensorInput>(program_.inputs[static_cast<std::size_t>(position)]);
      storage = program_.storages[described.storage];
    }
    const auto first = std::ranges::find_if(
        graph_->nodes(), [](const Node& node) { return node.op() != graph::Op::placeholder; });
    const Graph::InsertBefore before(*graph_, *first);
    Node& input = graph_->placeholder(operand.name() + "_of_" + call.name());
    input.meta.value = operand.meta.value;
    readers_.emplace(input.name(), call.name());
    described.is_leaf = true;
    described.storage = result_.storages.size();
    result_.storages.push_back(std::move(storage));
    result_.inputs.emplace_back(std::move(described));
    return Argument(&input);
  }

  const Candidate& program_;
  Candidate result_;
  std::unique_ptr<Graph> graph_;
  std::map<std::string, std::string, std::less<>> readers_;
};

}  // namespace

std::optional<ObservedProgram> first_calls(const Candidate& program, std::size_t count) {
  auto kept = keep_atoms(program, atoms(*program.graph), 0, count);
  if (!kept) return std::nullopt;
  auto graph = kept->graph->clone();
  std::vector<std::string> results = return_everything(program, *graph);
  if (results.empty()) return std::nullopt;
  kept->graph = std::move(graph);
  return ObservedProgram{std::move(*kept), std::move(results)};
}

std::optional<ObservedProgram> calls_alone(const Candidate& program) {
  if (program.values == nullptr) return std::nullopt;
  return Separation(program).run();
}

}  // namespace assay::reduce
