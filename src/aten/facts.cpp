#include "aten/facts.h"

#include "aten/convert.h"
#include "aten/match.h"
#include "aten/operator_record.h"
#include "aten/operators.h"
#include "aten/plan.h"
#include "aten/torch_functions.h"
#include "graph/print.h"

namespace assay::aten {

graph::CallFacts call_facts(const graph::Node& node) {
  const OperatorRecord& record = operator_record(node);
  const bool may_share = record.view != View::never || record.may_write() ||
                         node.op() != graph::Op::call_function || !node.target().is_operator();
  return {record.is_pure, record.may_write(), record.keeps_elements, may_share};
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
  options.facts = call_facts;
  options.verify.check_call = check_call;
  graph::read_settings(options);
  return options;
}

graph::PassOptions pass_options_for(const graph::Graph& input) {
  graph::PassOptions options = pass_options();
  if (!graph::find_problems(input, options.verify).empty()) options.verify.check_call = {};
  return options;
}

}  // namespace assay::aten
