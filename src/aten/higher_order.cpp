// Higher-order operators: those that take subgraphs. Stock PyTorch defines them in Python.
#include <c10/core/GradMode.h>

#include "assay/error.h"
#include "aten/plan.h"

namespace assay::aten {

namespace {

constexpr std::string_view kCond = "torch.ops.higher_order.cond";
constexpr std::string_view kInvokeSubgraph = "torch.ops.higher_order.invoke_subgraph";
constexpr std::string_view kWhileLoop = "torch.ops.higher_order.while_loop";
constexpr std::string_view kSetGradEnabled = "torch.ops.higher_order.wrap_with_set_grad_enabled";

const GraphRunner& runner_of(const Value& value, const RunPlan& plan) {
  auto found = plan.subgraphs.find(value.graph);
  if (value.kind != Value::Kind::subgraph || found == plan.subgraphs.end()) {
    throw UserError("expected a subgraph, found " + type_name(value));
  }
  return *found->second;
}

bool truth(const Value& value) {
  if (value.is_bool()) return value.leaf.toBool();
  if (value.is_tensor() && value.leaf.toTensor().numel() == 1) {
    return value.leaf.toTensor().item().toBool();
  }
  throw UserError("a condition must be a bool or a tensor of one element, found " +
                  type_name(value));
}

// The operands are a tuple, or a list of values where a subgraph takes none.
std::vector<Value> operands(const Arguments& arguments, std::size_t at) {
  return at < arguments.positional.size() ? unpack(arguments.positional[at]) : std::vector<Value>();
}

Value run_cond(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.size() < 3) throw UserError("cond takes a condition and two subgraphs");
  const bool is_true = truth(arguments.positional[0]);
  const Value& branch = arguments.positional[is_true ? 1 : 2];
  return runner_of(branch, plan).run(operands(arguments, 3));
}

Value run_invoke_subgraph(const Arguments& arguments, const RunPlan& plan) {
  // invoke_subgraph(subgraph, identifier, *operands)
  if (arguments.positional.size() < 2) throw UserError("invoke_subgraph takes a subgraph");
  const auto begin = arguments.positional.begin() + 2;
  return runner_of(arguments.positional[0], plan)
      .run(std::vector<Value>(begin, arguments.positional.end()));
}

Value run_with_grad_enabled(const Arguments& arguments, const RunPlan& plan) {
  // wrap_with_set_grad_enabled(enabled, subgraph, *operands)
  if (arguments.positional.size() < 2 || !arguments.positional[0].is_bool()) {
    throw UserError("wrap_with_set_grad_enabled takes a bool and a subgraph");
  }
  const c10::AutoGradMode mode(arguments.positional[0].leaf.toBool());
  const auto begin = arguments.positional.begin() + 2;
  return runner_of(arguments.positional[1], plan)
      .run(std::vector<Value>(begin, arguments.positional.end()));
}

Value run_while_loop(const Arguments& arguments, const RunPlan& plan) {
  // while_loop(condition, body, carried, additional)
  if (arguments.positional.size() < 3) throw UserError("while_loop takes two subgraphs and values");
  const GraphRunner& condition = runner_of(arguments.positional[0], plan);
  const GraphRunner& body = runner_of(arguments.positional[1], plan);
  std::vector<Value> carried = operands(arguments, 2);
  const std::vector<Value> additional = operands(arguments, 3);
  const auto inputs = [&] {
    std::vector<Value> all = carried;
    all.insert(all.end(), additional.begin(), additional.end());
    return all;
  };
  while (truth(condition.run(inputs()))) carried = unpack(body.run(inputs()));
  return Value::sequence(Value::Kind::tuple, std::move(carried));
}

}  // namespace

bool is_higher_order(const graph::Target& target) {
  const std::string& name = target.name();
  return name == kCond || name == kInvokeSubgraph || name == kWhileLoop || name == kSetGradEnabled;
}

Value run_higher_order(const graph::Target& target, const Arguments& arguments,
                       const RunPlan& plan) {
  if (!arguments.keywords.empty()) throw UserError(target.name() + " takes no keyword arguments");
  if (target.name() == kCond) return run_cond(arguments, plan);
  if (target.name() == kWhileLoop) return run_while_loop(arguments, plan);
  if (target.name() == kSetGradEnabled) return run_with_grad_enabled(arguments, plan);
  return run_invoke_subgraph(arguments, plan);
}

}  // namespace assay::aten
