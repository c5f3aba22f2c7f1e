// The graph and the guards of a segment that has ended.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "aten/input_copies.h"
#include "aten/operator_record.h"
#include "capture/recipe_builder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

constexpr const char* kSetGradMode = "torch._C._set_grad_enabled";

struct AutogradState {
  bool requires_grad;
  bool is_leaf;
};

// Inputs for the compiler in the place of those that the program has changed by now: they share
// memory as the real ones do, and require grad as these did.
std::vector<c10::IValue> examples_as_before(const std::vector<c10::IValue>& inputs,
                                            const std::vector<AutogradState>& autograd_before) {
  const at::AutoGradMode no_grad(false);
  std::vector<aten::Value> values;
  for (const c10::IValue& input : inputs) {
    values.emplace_back(input.isTensor() ? c10::IValue(input.toTensor().detach()) : input);
  }
  std::vector<c10::IValue> examples;
  for (aten::Value& copy : aten::copy_inputs(values)) {
    if (!copy.leaf.isTensor()) {
      examples.push_back(std::move(copy.leaf));
      continue;
    }
    at::Tensor tensor = copy.leaf.toTensor();
    const AutogradState& before = autograd_before[examples.size()];
    if (before.requires_grad) tensor.requires_grad_();
    if (!before.is_leaf) tensor = aten::with_history(tensor);
    examples.emplace_back(std::move(tensor));
  }
  return examples;
}

}  // namespace

bool writes_to_argument(const graph::Node& node) {
  if (!node.is_call()) return false;
  const aten::OperatorRecord& record = aten::operator_record(node);
  if (record.is_known) return !record.writes.empty();
  const std::string_view name = node.target().base_name();
  const auto is_written = [](const graph::NamedArgument& argument) {
    return argument.name == "out" || argument.name == "inplace";
  };
  return (name.ends_with('_') && !name.ends_with("__")) || name.ends_with("_norm") ||
         std::ranges::any_of(node.kwargs(), is_written);
}

std::vector<std::vector<const Source*>> RecipeBuilder::distinct_groups() const {
  std::vector<std::vector<const Source*>> groups;
  std::vector<const Source*> tensors;
  for (const auto& input : recorder_.inputs_) {
    if (input.tensor.defined()) tensors.push_back(input.source);
  }
  if (tensors.size() > 1) groups.push_back(std::move(tensors));
  for (auto& [object, tracked] : recorder_.tracked_) {
    if (!tracked.is_mutated || tracked.source == nullptr) continue;
    std::vector<const Source*> group = {tracked.source};
    const bool is_fixed = tracked.kind == Tracked::Kind::constant;
    for (auto& [other, its] : recorder_.tracked_) {
      const bool may_be_it =
          its.kind == Tracked::Kind::source || (!is_fixed && its.kind == Tracked::Kind::constant);
      if (other != object && may_be_it && its.is_touched && Py_TYPE(other) == Py_TYPE(object)) {
        group.push_back(its.source);
      }
    }
    // Only the changed one must differ from the others; a group says all differ, which is stricter
    // and holds of the objects that were seen.
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  for (const auto& [left, right] : recorder_.distinct_) groups.push_back({left, right});
  recorder_.distinct_keys(groups);
  return groups;
}

// A graph that sets grad mode starts with it on, whatever it is outside, and leaves it as it was:
// a compiler decides by the mode at the start what it differentiates.
void RecipeBuilder::keep_grad_mode(graph::Graph& graph) {
  const bool sets_mode = std::ranges::any_of(
      graph.nodes(), [&](const graph::Node& node) { return node.calls(kSetGradMode); });
  if (!sets_mode) return;
  segment_.runs_with_grad = true;
  if (!recorder_.initial_grad_mode_) {
    for (graph::Node& node : graph.nodes()) {
      if (node.op() == graph::Op::placeholder) continue;
      const graph::Graph::InsertBefore before(graph, node);
      graph.call_function(kSetGradMode, {false});
      break;
    }
  }
  if (!recorder_.grad_mode_) graph.call_function(kSetGradMode, {true});
}

// Tensors that the program has when the segment ends at a break, and from which others are
// computed: it may give them hooks, or ask for their gradients.
std::vector<graph::NodeId> RecipeBuilder::nodes_seen_from_outside() const {
  const auto& hooked = recorder_.hooked_;
  const bool goes_on = segment_.result < 0;
  std::vector<graph::NodeId> found;
  for (const graph::Node& node : recorder_.graph_->nodes()) {
    const auto is_output = [](const graph::Node* user) { return user->op() == graph::Op::output; };
    if (!node.is_call() || std::ranges::all_of(node.users(), is_output)) continue;
    const bool is_hooked = std::ranges::find(hooked, node.id()) != hooked.end();
    const graph::TensorMeta* meta = node.meta.value.tensor();
    const bool is_seen = goes_on && std::ranges::any_of(node.users(), is_output) &&
                         (meta == nullptr || meta->requires_grad);
    if (is_hooked || is_seen) found.push_back(node.id());
  }
  return found;
}

std::vector<c10::IValue> RecipeBuilder::finish_graph() {
  graph::Graph& graph = *recorder_.graph_;
  std::vector<c10::IValue> examples;
  keep_grad_mode(graph);
  std::vector<graph::Argument> results(outputs_.begin(), outputs_.end());
  for (auto region = recorder_.autocast_.rbegin(); region != recorder_.autocast_.rend(); ++region) {
    graph.call_function("torch.amp.autocast_mode._exit_autocast", {region->node});
    segment_.autocast.insert(segment_.autocast.begin(), region->inside);
  }
  graph.set_output(graph::Tuple{std::move(results)});
  // Items that nobody took of results with many.
  for (auto node = recorder_.nodes_.rbegin(); node != recorder_.nodes_.rend(); ++node) {
    if ((*node)->calls("operator.getitem") && (*node)->users().empty()) graph.erase(**node);
  }
  const bool may_write = std::ranges::any_of(graph.nodes(), writes_to_argument);
  // Inference tensors do not count their versions.
  const auto is_mutated = [&](const auto& input) {
    if (input.number) return false;
    const bool is_written =
        input.tensor.is_inference() ? may_write : input.tensor._version() != input.version;
    return is_written || input.tensor.requires_grad() != input.requires_grad;
  };
  bool is_sized = is_segment_sized(std::ranges::any_of(recorder_.inputs_, is_mutated));
  if (!is_sized) fix_sizes();
  std::vector<const Source*> input_sources;
  std::vector<AutogradState> autograd_before;
  for (const auto& input : recorder_.inputs_) {
    if (input.placeholder->users().empty()) {
      recorder_.size_numbers_.forget(*input.placeholder);
      graph.erase(*input.placeholder);
      continue;
    }
    input_sources.push_back(input.source);
    segment_.mutates_inputs = segment_.mutates_inputs || is_mutated(input);
    examples.push_back(input.number ? to_input(input.number.get()) : c10::IValue(input.tensor));
    autograd_before.push_back({input.requires_grad, input.is_leaf});
  }
  if (segment_.mutates_inputs) {
    segment_.sharing.emplace(examples);
    examples = examples_as_before(examples, autograd_before);
  }
  segment_.is_random =
      recorder_.is_random_ || std::ranges::any_of(graph.nodes(), [](const graph::Node& node) {
        return node.is_call() && aten::operator_record(node).is_random;
      });
  segment_.hooked = nodes_seen_from_outside();
  const bool has_calls =
      std::ranges::any_of(graph.nodes(), [](const graph::Node& node) { return node.is_call(); });
  if (is_sized && (!has_calls || !finish_sizes(input_sources, examples))) {
    is_sized = false;
    fix_sizes();
  }
  std::vector<bool> needed(recorder_.sources_.size());
  for (const Source* source : input_sources) needed[static_cast<std::size_t>(source->id)] = true;
  for (const Recipe& made : segment_.recipes) {
    if (made.make == Make::source) needed[static_cast<std::size_t>(made.index)] = true;
  }
  segment_.guards = std::make_unique<SegmentGuards>(
      recorder_.sources_, needed, distinct_groups(), std::move(recorder_.lookups_),
      std::move(recorder_.subclass_checks_), recorder_.state_, recorder_.root_->frame->f_globals);
  if (recorder_.no_exception_) segment_.guards->require_no_exception();
  std::vector<const Source*> by_id;
  for (const Source& source : recorder_.sources_.all()) by_id.push_back(&source);
  for (Recipe& made : segment_.recipes) {
    if (made.make == Make::source) {
      made.index = segment_.guards->step_of(*by_id[static_cast<std::size_t>(made.index)]);
    }
  }
  for (const Source* source : input_sources) {
    segment_.inputs.push_back({segment_.guards->step_of(*source)});
  }
  // What sets grad mode only is an effect of the segment.
  const bool computes = std::ranges::any_of(graph.nodes(), [](const graph::Node& node) {
    return node.is_call() && !node.calls(kSetGradMode);
  });
  if (computes && !is_sized) segment_.graph = recorder_.graph_;
  return examples;
}

}  // namespace assay::capture
