#include "aten/facts.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>

#include "aten/convert.h"
#include "aten/match.h"
#include "aten/operators.h"
#include "aten/plan.h"
#include "aten/torch_functions.h"
#include "graph/print.h"
#include "graph/python_operators.h"

namespace assay::aten {

namespace {

bool writes(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  });
}

// Declared as changing nothing, but they update their running statistics.
constexpr std::array<std::string_view, 7> kWritesStatistics = {"aten::batch_norm",
                                                               "aten::_batch_norm_impl_index",
                                                               "aten::native_batch_norm",
                                                               "aten::cudnn_batch_norm",
                                                               "aten::miopen_batch_norm",
                                                               "aten::instance_norm",
                                                               "aten::batch_norm_update_stats"};

// Python's operators compute, except the in-place ones.
bool is_pure_function(const std::string& name) {
  if (name == "operator.getitem" || name == "getattr") return true;
  const auto* found = graph::operator_of_function(name);
  return found != nullptr && found->form != graph::PythonOperator::Form::in_place;
}

}  // namespace

bool is_pure_operator(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  return !schema.returns().empty() && !writes(schema) &&
         !op.hasTag(at::Tag::nondeterministic_seeded) &&
         std::ranges::find(kWritesStatistics, op.operator_name().name) == kWritesStatistics.end();
}

bool is_pure(const graph::Node& node) {
  if (node.op() != graph::Op::call_function) return false;
  if (const auto op = find_operator(node.target())) return is_pure_operator(*op);
  return is_pure_function(node.target().name());
}

std::optional<std::string> check_call(const graph::Node& node) {
  if (node.op() != graph::Op::call_function || !node.target().is_operator()) return std::nullopt;
  const std::string& name = node.target().name();
  if (find_torch_function(name) != nullptr || is_higher_order(node.target())) return std::nullopt;
  const auto op = find_operator(node.target());
  if (!op) return unknown_operator(name).what();
  CallShape shape;
  shape.positional = node.args().size();
  for (const auto& keyword : node.kwargs()) shape.keywords.push_back(keyword.name);
  std::string why;
  const auto bindings = bind_schema(op->schema(), shape, Dialect::operator_call, why);
  if (!bindings) return name + " " + why + "; its schema is " + schema_text(*op);
  for (std::size_t i = 0; i < bindings->size(); ++i) {
    const Binding& binding = (*bindings)[i];
    if (binding.source == Binding::Source::default_value) continue;
    const graph::Argument& argument = binding.source == Binding::Source::keyword
                                          ? node.kwargs()[binding.index].value
                                          : node.args()[binding.index];
    bool mentions_node = false;
    argument.for_each_node([&](const graph::Node&) { mentions_node = true; });
    int cost = 0;
    if (mentions_node || convert(constant_value(argument), op->schema(), i, cost)) {
      continue;
    }
    return name + " argument '" + op->schema().arguments()[i].name() + "' cannot be " +
           graph::print(argument) + "; its schema is " + schema_text(*op);
  }
  return std::nullopt;
}

graph::PassOptions pass_options() {
  graph::PassOptions options;
  options.facts.is_pure = is_pure;
  options.verify.check_call = check_call;
  graph::read_settings(options);
  return options;
}

}  // namespace assay::aten
