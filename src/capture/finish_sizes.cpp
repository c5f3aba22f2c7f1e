// The numbers that follow from sizes, in the graph of a segment that has ended.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "assay/error.h"
#include "capture/recipe_builder.h"
#include "capture/sized_runs.h"

namespace assay::capture {

namespace {

using Nodes = std::unordered_set<const graph::Node*>;

bool is_left_open(const Source& source) {
  const Checks& checks = source.checks;
  return checks.tensor ? checks.tensor->is_open() : !checks.value;
}

// The nodes among the numbers that need nothing but the sizes of inputs.
Nodes that_follow_from_inputs(const std::vector<SizeNumbers::Number>& numbers) {
  Nodes found;
  for (const SizeNumbers::Number& number : numbers) {
    bool follows = true;
    number.node->for_each_input([&](const graph::Node& input) {
      follows = follows && (input.op() == graph::Op::placeholder || found.contains(&input));
    });
    if (follows) found.insert(number.node);
  }
  return found;
}

// The placeholders that nodes are computed from.
Nodes inputs_behind(const std::vector<const graph::Node*>& nodes) {
  Nodes seen;
  Nodes found;
  std::vector<const graph::Node*> waiting = nodes;
  while (!waiting.empty()) {
    const graph::Node* node = waiting.back();
    waiting.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->op() == graph::Op::placeholder) found.insert(node);
    node->for_each_input([&](const graph::Node& input) { waiting.push_back(&input); });
  }
  return found;
}

// Removes calls that nothing uses, those that are used by such calls only included.
template <typename Predicate>
void erase_unused(graph::Graph& graph, Predicate may_go) {
  for (auto node = graph.nodes().end(); node != graph.nodes().begin();) {
    --node;
    if (!node->is_call() || !node->users().empty() || !may_go(*node)) continue;
    graph::Node& unused = *node;
    ++node;
    graph.erase(unused);
  }
}

// A copy that gives numbers after the results.
std::unique_ptr<graph::Graph> with_results(const graph::Graph& graph,
                                           const std::vector<graph::Argument>& results,
                                           const std::vector<const graph::Node*>& numbers) {
  std::unique_ptr<graph::Graph> copy = graph.clone();
  const auto copied = [&](const graph::Node& node) -> graph::Argument {
    return copy->find(node.name());
  };
  std::vector<graph::Argument> all;
  for (const graph::Argument& result : results) all.push_back(result.map_nodes(copied));
  for (const graph::Node* number : numbers) all.push_back(copied(*number));
  copy->output()->set_arguments({graph::Tuple{std::move(all)}});
  return copy;
}

}  // namespace

bool RecipeBuilder::is_segment_sized(bool mutates_inputs) const {
  const Recorder& recorder = recorder_;
  if (!recorder.follows_sizes_ || recorder.fixes_all_sizes_) return false;
  const auto is_open = [](const auto& input) {
    return is_left_open(*input.source) && (input.number || !input.placeholder->users().empty());
  };
  if (std::ranges::none_of(recorder.inputs_, is_open)) return false;
  if (!mutates_inputs) return true;
  // Whether the segment fits must be known before anything is mutated.
  const Nodes known = that_follow_from_inputs(recorder.size_numbers_.numbers());
  return std::ranges::all_of(needed_numbers(),
                             [&](const graph::Node* node) { return known.contains(node); });
}

std::vector<graph::Node*> RecipeBuilder::needed_numbers() const {
  std::vector<graph::Node*> needed = numbers_;
  for (const SizeNumbers::Condition& condition : recorder_.size_numbers_.conditions()) {
    if (std::ranges::find(needed, condition.node) == needed.end()) {
      needed.push_back(condition.node);
    }
  }
  return needed;
}

void RecipeBuilder::fix_sizes() {
  std::unordered_map<const graph::Node*, graph::Argument> values;
  for (const SizeNumbers::Number& number : recorder_.size_numbers_.numbers()) {
    PyObject* object = number.object.get();
    values.emplace(number.node, object == nullptr ? graph::Argument(number.value != 0)
                                : PyFloat_CheckExact(object)
                                    ? graph::Argument(PyFloat_AS_DOUBLE(object))
                                    : graph::Argument(number.value));
  }
  const auto replace = [&](graph::Node& node) -> graph::Argument {
    const auto found = values.find(&node);
    return found == values.end() ? graph::Argument(&node) : found->second;
  };
  for (graph::Node& node : recorder_.graph_->nodes()) {
    bool uses_number = false;
    node.for_each_input(
        [&](const graph::Node& input) { uses_number = uses_number || values.contains(&input); });
    if (!uses_number) continue;
    std::vector<graph::Argument> args;
    for (const graph::Argument& argument : node.args()) args.push_back(argument.map_nodes(replace));
    std::vector<graph::NamedArgument> kwargs;
    for (const graph::NamedArgument& argument : node.kwargs()) {
      kwargs.push_back({argument.name, argument.value.map_nodes(replace)});
    }
    node.set_arguments(std::move(args), std::move(kwargs));
  }
  const auto& numbers = recorder_.size_numbers_.numbers();
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    if (number->node->op() == graph::Op::placeholder) continue;
    std::erase(recorder_.nodes_, number->node);
    recorder_.graph_->erase(*number->node);
  }
  for (const auto& input : recorder_.inputs_) {
    if (input.number) input.source->checks.value = input.number;
  }
  for (Recipe& recipe : segment_.recipes) {
    if (recipe.make != Make::number) continue;
    const auto is_it = [&](const SizeNumbers::Number& number) {
      return number.node == numbers_[static_cast<std::size_t>(recipe.index)];
    };
    const auto found = std::ranges::find_if(numbers, is_it);
    recipe.make = Make::constant;
    recipe.object = Ref::steal(PyLong_FromLongLong(found->value));
  }
  numbers_.clear();
  recorder_.size_numbers_.clear();
  for (Source& source : recorder_.sources_.all()) {
    if (source.checks.tensor) source.checks.tensor->close();
  }
}

bool RecipeBuilder::finish_sizes(const std::vector<const Source*>& inputs,
                                 const std::vector<c10::IValue>& examples) {
  const graph::Graph& graph = *recorder_.graph_;
  const auto& numbers = recorder_.size_numbers_.numbers();
  const auto& conditions = recorder_.size_numbers_.conditions();
  const Nodes known = that_follow_from_inputs(numbers);
  SizedRuns::Plan plan;
  std::vector<const graph::Node*> from_inputs;
  std::vector<const graph::Node*> from_results;
  for (const graph::Node* node : needed_numbers()) {
    const auto found = std::ranges::find(numbers, node, &SizeNumbers::Number::node);
    const bool is_expected =
        std::ranges::find(conditions, node, &SizeNumbers::Condition::node) != conditions.end();
    plan.numbers.push_back({found->value, is_expected, known.contains(node)});
    (known.contains(node) ? from_inputs : from_results).push_back(node);
  }
  std::unordered_set<graph::NodeId> ids;
  for (const SizeNumbers::Number& number : numbers) ids.insert(number.node->id());
  const auto is_number = [&](const graph::Node& node) { return ids.contains(node.id()); };
  const std::vector<graph::Argument> results = graph.output()->args()[0].items();
  std::unique_ptr<graph::Graph> whole = with_results(graph, results, {});
  erase_unused(*whole, is_number);
  plan.graph = std::move(whole);
  if (!from_inputs.empty()) {
    std::unique_ptr<graph::Graph> checks = with_results(graph, {}, from_inputs);
    erase_unused(*checks, [](const graph::Node&) { return true; });
    plan.checks = std::move(checks);
  }
  if (!from_results.empty()) {
    std::unique_ptr<graph::Graph> probe = with_results(graph, results, from_results);
    erase_unused(*probe, is_number);
    plan.probe = std::move(probe);
  }
  const Nodes behind_results = inputs_behind(from_results);
  const Nodes behind_inputs = inputs_behind(from_inputs);
  const std::vector<const graph::Node*> placeholders = plan.graph->placeholders();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const graph::Node* recorded = graph.find(placeholders[i]->name());
    const bool is_used = !placeholders[i]->users().empty() || behind_results.contains(recorded);
    const bool is_open = is_left_open(*inputs[i]);
    // A counter that the graph does not use is no reason to compile anew.
    const bool is_tensor = inputs[i]->checks.tensor.has_value();
    plan.is_open.push_back(is_open && (is_used || is_tensor));
    plan.checks_every_call = plan.checks_every_call || (is_open && !is_tensor && !is_used &&
                                                        behind_inputs.contains(recorded));
  }
  try {
    const std::shared_ptr<const graph::Graph> made = plan.graph;
    auto runs = std::make_shared<SizedRuns>(std::move(plan));
    std::vector<std::int64_t> values;
    if (!runs->pass_checks(examples, values)) return false;
    segment_.sizes = std::move(runs);
    segment_.graph = made;
    return true;
  } catch (const Error&) {
    return false;  // an argument of the graph that must be a constant
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace assay::capture
