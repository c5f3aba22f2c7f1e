#include "aten/plan.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "assay/error.h"
#include "aten/convert.h"
#include "aten/operators.h"
#include "aten/result_structure.h"
#include "graph/print.h"

namespace assay::aten {

namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;
using graph::Op;

struct ConstantReader {
  Value operator()(const graph::None&) const { return Value(); }
  Value operator()(bool value) const { return c10::IValue(value); }
  Value operator()(std::int64_t value) const { return c10::IValue(value); }
  Value operator()(double value) const { return c10::IValue(value); }
  Value operator()(std::complex<double> value) const {
    return c10::IValue(c10::complex<double>(value));
  }
  Value operator()(const std::string& value) const { return c10::IValue(value); }
  Value operator()(c10::ScalarType value) const {
    return {Value::Kind::dtype, static_cast<std::int64_t>(value)};
  }
  Value operator()(c10::Device value) const { return c10::IValue(value); }
  Value operator()(c10::Layout value) const {
    return {Value::Kind::layout, static_cast<std::int64_t>(value)};
  }
  Value operator()(c10::MemoryFormat value) const {
    return {Value::Kind::memory_format, static_cast<std::int64_t>(value)};
  }
  Value operator()(const graph::Ellipsis&) const { return {Value::Kind::ellipsis, c10::IValue()}; }
  Value operator()(const graph::QualifiedName& value) const {
    return {Value::Kind::name, value.name};
  }
  // Only numbers can be run: a size with symbols is an error that names one.
  Value operator()(const graph::SizeExpr& size) const { return c10::IValue(size.evaluate({})); }
  Value operator()(Node*) const { throw InternalError("a constant mentions a node"); }
  Value operator()(const graph::List& value) const { return items(Value::Kind::list, value.items); }
  Value operator()(const graph::Tuple& value) const {
    return items(Value::Kind::tuple, value.items);
  }
  Value operator()(const graph::Slice& value) const {
    return items(Value::Kind::slice, value.items);
  }
  Value operator()(const graph::Dict& value) const {
    Value made = items(Value::Kind::dict, value.items);
    made.keys = value.keys;
    return made;
  }

  static Value items(Value::Kind kind, const std::vector<Argument>& arguments) {
    std::vector<Value> values;
    values.reserve(arguments.size());
    for (const Argument& argument : arguments) values.push_back(constant_value(argument));
    return Value::sequence(kind, std::move(values));
  }
};

bool mentions_node(const Argument& argument) {
  bool found = false;
  argument.for_each_node([&](Node&) { found = true; });
  return found;
}

Value container_shell(const Argument& argument) {
  Value shell;
  if (argument.get_if<graph::List>() != nullptr) shell.kind = Value::Kind::list;
  if (argument.get_if<graph::Tuple>() != nullptr) shell.kind = Value::Kind::tuple;
  if (argument.get_if<graph::Slice>() != nullptr) shell.kind = Value::Kind::slice;
  if (const auto* dict = argument.get_if<graph::Dict>()) {
    shell.kind = Value::Kind::dict;
    shell.keys = dict->keys;
  }
  return shell;
}

// True for `node[3]`: the index, and the node it indexes.
std::optional<std::int64_t> constant_item(const Node& node) {
  if (!node.calls("operator.getitem") || node.args().size() != 2 || !node.kwargs().empty() ||
      node.args()[0].node() == nullptr) {
    return std::nullopt;
  }
  const auto* index = node.args()[1].get_if<std::int64_t>();
  return index == nullptr ? std::nullopt : std::optional(*index);
}

OperatorArgument default_operand(const c10::Argument& wanted) {
  OperatorArgument operand;
  operand.schema = &wanted;
  operand.constant = *wanted.default_value();
  return operand;
}

template <typename Visit>
void for_each_slot(const Template& value, const Visit& visit) {
  if (value.slot != kNoSlot) visit(value.slot);
  for (const Template& item : value.items) for_each_slot(item, visit);
}

class Planner {
 public:
  Planner(const Graph& graph, const graph::python::Source* source,
          std::span<const c10::IValue> bound)
      : plan_(std::make_unique<RunPlan>()) {
    plan_->graph = &graph;
    plan_->source = source;
    const auto placeholders = graph.placeholders();
    internal_check(bound.size() <= placeholders.size(), "only placeholders can be bound");
    const std::size_t first = placeholders.size() - bound.size();
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const Value value = unpack_value(bound[i]);
      bound_.emplace(placeholders[first + i], value);
      plan_->bound.emplace_back(placeholders[first + i], value);
    }
  }

  std::unique_ptr<RunPlan> run() {
    for (const Node& node : plan_->graph->nodes()) {
      try {
        plan_node(node);
      } catch (const UserError& error) {
        throw located_error(*plan_, node, error);
      }
    }
    internal_check(plan_->graph->output() != nullptr, "a graph to run has an output");
    const Argument& output = plan_->graph->output()->args()[0];
    plan_->output = make_template(output);
    for_each_result(output, [&](const Argument& leaf) { plan_output(leaf); });
    plan_->slot_count = next_slot_;
    mark_last_uses();
    return std::move(plan_);
  }

 private:
  Slot slot_of(const Node& node) {
    auto [found, is_new] = slots_.try_emplace(&node, next_slot_);
    if (is_new) ++next_slot_;
    return found->second;
  }

  Template make_template(const Argument& argument) {
    Template made;
    if (Node* node = argument.node()) {
      if (const auto found = bound_.find(node); found != bound_.end()) {
        made.constant = found->second;
      } else {
        made.slot = slot_of(*node);
      }
    } else if (mentions_node(argument)) {
      made.is_container = true;
      made.constant = container_shell(argument);
      for (const Argument& item : argument.items()) made.items.push_back(make_template(item));
    } else {
      made.constant = constant_value(argument);
    }
    return made;
  }

  void plan_output(const Argument& argument) {
    const Template value = make_template(argument);
    OutputLeaf& leaf = plan_->output_leaves.emplace_back();
    leaf.slot = value.slot;
    if (value.slot == kNoSlot) {
      leaf.constant = pack_value(value.constant);
      return;
    }
    leaf.is_last_mention = true;
    for (OutputLeaf& earlier : plan_->output_leaves) {
      if (&earlier != &leaf && earlier.slot == value.slot) earlier.is_last_mention = false;
    }
  }

  void plan_node(const Node& node) {
    switch (node.op()) {
      case Op::placeholder:
        if (bound_.contains(&node)) return;
        plan_->placeholders.push_back(&node);
        plan_->input_slots.push_back(slot_of(node));
        return;
      case Op::get_attr:
        plan_attribute(node);
        return;
      case Op::call_module:
        plan_module(node);
        return;
      case Op::call_function:
      case Op::call_method:
        plan_call(node);
        return;
      case Op::output:
        return;
    }
  }

  Step& add_step(Step::Kind kind, const Node& node) {
    Step& step = plan_->steps.emplace_back();
    step.kind = kind;
    step.node = &node;
    step.result = slot_of(node);
    return step;
  }

  const graph::Attribute& attribute(const Node& node) const {
    const graph::Attribute* found = plan_->graph->attribute(node.target().name());
    if (found == nullptr) {
      throw UserError("the module has no attribute '" + node.target().name() + "'");
    }
    return *found;
  }

  std::shared_ptr<const GraphRunner> subgraph_runner(const Graph& graph) {
    auto& runner = plan_->subgraphs[&graph];
    if (runner == nullptr) runner = std::make_shared<const GraphRunner>(graph, plan_->source);
    return runner;
  }

  void plan_attribute(const Node& node) {
    const graph::Attribute& found = attribute(node);
    Step& step = add_step(Step::Kind::attribute, node);
    if (const auto* tensor = std::get_if<graph::TensorAttribute>(&found.value)) {
      // Two reads of one attribute are one tensor, also if its contents are random.
      const auto [known, is_new] = attributes_.try_emplace(&found);
      if (is_new) known->second = attribute_value(*tensor);
      step.attribute = known->second;
    } else if (const Graph* subgraph = found.subgraph()) {
      step.attribute.kind = Value::Kind::subgraph;
      step.attribute.graph = subgraph;
      subgraph_runner(*subgraph);
    } else {
      throw unusable_attribute(found);
    }
  }

  void plan_module(const Node& node) {
    const graph::Attribute& found = attribute(node);
    const Graph* subgraph = found.subgraph();
    if (subgraph == nullptr) throw unusable_attribute(found);
    if (!node.kwargs().empty()) throw UserError("a subgraph takes no keyword arguments");
    Step& step = add_step(Step::Kind::subgraph_call, node);
    step.subgraph = subgraph_runner(*subgraph);
    fill_arguments(step, node);
  }

  void fill_arguments(Step& step, const Node& node) {
    for (const Argument& argument : node.args()) step.args.push_back(make_template(argument));
    for (const auto& [name, value] : node.kwargs()) {
      step.kwargs.emplace_back(name, make_template(value));
    }
  }

  void plan_call(const Node& node) {
    if (auto index = constant_item(node)) {
      if (taken_items_.contains(&node)) return;  // its producer fills the slot
      Step& step = add_step(Step::Kind::item, node);
      step.index = *index;
      fill_arguments(step, node);
      // A tensor can be indexed too; then it is a function call.
      step.resolution = resolve(node.op(), node.target());
      return;
    }
    if (is_higher_order(node.target())) {
      Step& step = add_step(Step::Kind::python_call, node);
      fill_arguments(step, node);
      return;
    }
    if (node.target().is_operator() && find_torch_function(node.target().name()) == nullptr) {
      const auto op = find_operator(node.target());
      if (!op) throw unknown_operator(node.target().name());
      check_is_harmless(*op);
      Step& step = add_step(Step::Kind::operator_call, node);
      plan_operator(step, node, *op);
      return;
    }
    Step& step = add_step(Step::Kind::python_call, node);
    step.resolution = resolve(node.op(), node.target());
    fill_arguments(step, node);
  }

  void plan_operator(Step& step, const Node& node, const c10::OperatorHandle& op) {
    step.op = op;
    step.result_count = op.schema().returns().size();
    CallShape shape;
    shape.positional = node.args().size();
    for (const auto& keyword : node.kwargs()) shape.keywords.push_back(keyword.name);
    std::string why;
    const auto bindings = bind_schema(op.schema(), shape, Dialect::operator_call, why);
    if (!bindings) throw mismatch(op, why);
    for (std::size_t i = 0; i < bindings->size(); ++i) {
      step.operands.push_back(operand_of(node, op, i, (*bindings)[i]));
    }
    if (step.result_count > 1) take_items(step, node);
    step.unboxed = find_unboxed(op);
    if (step.operands.size() > 1 && step.operands[1].kind == OperatorArgument::Kind::constant) {
      step.float_constant = float_constant(op, step.operands[1].constant);
    }
  }

  static UserError mismatch(const c10::OperatorHandle& op, const std::string& why) {
    return UserError(python_name(op) + " " + why, "its schema is " + schema_text(op));
  }

  OperatorArgument operand_of(const Node& node, const c10::OperatorHandle& op, std::size_t position,
                              const Binding& binding) {
    const c10::Argument& wanted = op.schema().arguments()[position];
    if (binding.source == Binding::Source::default_value) return default_operand(wanted);
    const Argument& argument = binding.source == Binding::Source::keyword
                                   ? node.kwargs()[binding.index].value
                                   : node.args()[binding.index];
    auto operand = make_operand(op, position, make_template(argument));
    if (operand) return std::move(*operand);
    throw mismatch(op, "argument '" + wanted.name() + "' should be " +
                           wanted.real_type()->annotation_str() + ", found " +
                           graph::print(argument).substr(0, 80));
  }

  // Where all users only pick items, results go straight to the items' slots.
  void take_items(Step& step, const Node& node) {
    const auto count = static_cast<std::int64_t>(step.result_count);
    std::vector<Slot> items(step.result_count, kNoSlot);
    std::vector<const Node*> taken;
    for (const Node* user : node.users()) {
      auto index = constant_item(*user);
      if (!index || *index < -count || *index >= count) return;
      const auto at = static_cast<std::size_t>(*index < 0 ? *index + count : *index);
      if (items[at] != kNoSlot) return;  // two nodes for one item: keep it simple
      items[at] = slot_of(*user);
      taken.push_back(user);
    }
    step.item_results = std::move(items);
    taken_items_.insert(taken.begin(), taken.end());
  }

  // ---- last uses ----

  template <typename Visit>
  static void for_each_read(const Step& step, const Visit& visit) {
    for (const OperatorArgument& operand : step.operands) for_each_slot(operand.value, visit);
    for (const Template& value : step.args) for_each_slot(value, visit);
    for (const auto& [name, value] : step.kwargs) for_each_slot(value, visit);
  }

  void mark_last_uses() {
    std::vector<bool> is_emptied(next_slot_, false);
    std::vector<bool> is_needed(next_slot_, false);
    for_each_slot(plan_->output, [&](Slot slot) { is_needed[slot] = true; });
    for (auto step = plan_->steps.rbegin(); step != plan_->steps.rend(); ++step) {
      std::vector<Slot> last;
      for_each_read(*step, [&](Slot slot) {
        if (!is_needed[slot]) last.push_back(slot);
        is_needed[slot] = true;
      });
      for (OperatorArgument& operand : step->operands) {
        if (operand.kind != OperatorArgument::Kind::tensor_slot) continue;
        const auto reads = count_reads(*step, operand.slot);
        auto found = std::ranges::find(last, operand.slot);
        if (reads == 1 && found != last.end()) {
          operand.is_last_use = true;
          is_emptied[operand.slot] = true;
          last.erase(found);
        }
      }
      step->released = std::move(last);
      // A result nobody reads dies at once.
      if (step->item_results.empty() && !is_needed[step->result]) {
        step->released.push_back(step->result);
      }
      for (Slot slot : step->released) is_emptied[slot] = true;
    }
    for (Slot slot = 0; slot < next_slot_; ++slot) {
      if (!is_emptied[slot]) plan_->kept_slots.push_back(slot);
    }
  }

  static std::size_t count_reads(const Step& step, Slot wanted) {
    std::size_t reads = 0;
    for_each_read(step, [&](Slot slot) { reads += slot == wanted ? 1 : 0; });
    return reads;
  }

  std::unique_ptr<RunPlan> plan_;
  std::unordered_map<const Node*, Slot> slots_;
  std::unordered_map<const Node*, Value> bound_;
  std::unordered_map<const graph::Attribute*, Value> attributes_;
  std::unordered_set<const Node*> taken_items_;
  Slot next_slot_ = 0;
};

}  // namespace

UserError located_error(const RunPlan& plan, const Node& node, const UserError& error) {
  if (error.detail().where.line != 0) return error;  // a subgraph's node was named already
  UserErrorDetail detail = error.detail();
  detail.message = "node '" + node.name() + "': " + detail.message;
  if (plan.source == nullptr || !node.meta.text_offset) return UserError(std::move(detail));
  const std::string& text = plan.source->text;
  const std::size_t begin = *node.meta.text_offset;
  const std::size_t end = std::min(text.find('\n', begin), text.size());
  return plan.source->error(begin, end - begin, detail.message, detail.hint);
}

std::optional<OperatorArgument> make_operand(const c10::OperatorHandle& op, std::size_t position,
                                             Template value) {
  OperatorArgument operand;
  operand.schema = &op.schema().arguments()[position];
  operand.position = position;
  operand.value = std::move(value);
  // A bound tensor for a number's parameter is read when the call is made, not now.
  const bool is_read_late =
      operand.value.constant.is_tensor() && !wants_tensor(*operand.schema->real_type());
  if (operand.value.is_constant() && !is_read_late) {
    int cost = 0;
    auto converted = convert(operand.value.constant, op.schema(), position, cost);
    if (!converted) return std::nullopt;
    operand.constant = std::move(*converted);
    return operand;
  }
  operand.slot = operand.value.slot;
  const bool is_tensor_slot = operand.slot != kNoSlot && wants_tensor(*operand.schema->real_type());
  operand.kind =
      is_tensor_slot ? OperatorArgument::Kind::tensor_slot : OperatorArgument::Kind::other;
  return operand;
}

ValueKind kind_of(const Value& value) {
  if (!value.is_leaf()) return value.is_sequence() ? ValueKind::container : ValueKind::other;
  const c10::IValue& leaf = value.leaf;
  if (leaf.isTensor()) return ValueKind::tensor;
  if (leaf.isNone()) return ValueKind::none;
  if (leaf.isBool()) return ValueKind::boolean;
  if (leaf.isInt()) return ValueKind::integer;
  if (leaf.isDouble()) return ValueKind::floating;
  return leaf.isList() ? ValueKind::container : ValueKind::other;
}

std::unique_ptr<const ChosenOverload> remember_overload(const Step& step, const Match& match,
                                                        const std::vector<Value>& slots) {
  auto chosen = std::make_unique<ChosenOverload>(ChosenOverload{match.op, {}, {}});
  for (std::size_t i = 0; i < match.bindings.size(); ++i) {
    const Binding& binding = match.bindings[i];
    const c10::Argument& wanted = match.op.schema().arguments()[i];
    if (binding.source == Binding::Source::default_value) {
      chosen->operands.push_back(default_operand(wanted));
      continue;
    }
    Template value;
    if (binding.source == Binding::Source::spread) {
      value.is_container = true;
      value.constant.kind = Value::Kind::list;
      value.items.assign(step.args.begin() + static_cast<std::ptrdiff_t>(binding.index),
                         step.args.end());
    } else {
      value = binding.source == Binding::Source::keyword ? step.kwargs[binding.index].second
                                                         : step.args[binding.index];
    }
    for_each_slot(value,
                  [&](Slot slot) { chosen->kinds.emplace_back(slot, kind_of(slots[slot])); });
    // What a list holds decides as well, and is not looked at again: choose anew each time.
    const auto is_simple = [](const auto& entry) {
      return entry.second != ValueKind::container && entry.second != ValueKind::other;
    };
    if (!std::ranges::all_of(chosen->kinds, is_simple)) return nullptr;
    auto operand = make_operand(match.op, i, std::move(value));
    internal_check(operand.has_value(), "a constant that matched once matches again");
    chosen->operands.push_back(std::move(*operand));
  }
  return chosen;
}

Value constant_value(const Argument& argument) {
  return std::visit(ConstantReader{}, argument.value());
}

std::unique_ptr<RunPlan> make_plan(const Graph& graph, const graph::python::Source* source,
                                   std::span<const c10::IValue> bound) {
  return Planner(graph, source, bound).run();
}

}  // namespace assay::aten
