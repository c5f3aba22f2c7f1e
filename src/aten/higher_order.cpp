// Higher-order operators: those that take subgraphs. Stock PyTorch defines them in Python.
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <mutex>

#include "assay/error.h"
#include "aten/auto_functionalized.h"
#include "aten/flex_attention.h"
#include "aten/plan.h"
#include "aten/recorder.h"

namespace assay::aten {

namespace {

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

// The operands from a position on.
std::vector<Value> rest(const Arguments& arguments, std::size_t at) {
  if (arguments.positional.size() < at) throw UserError("too few arguments");
  return {arguments.positional.begin() + static_cast<std::ptrdiff_t>(at),
          arguments.positional.end()};
}

// wrap_with_set_grad_enabled(enabled, subgraph, *operands)
Value run_with_grad_enabled(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.size() < 2 || !arguments.positional[0].is_bool()) {
    throw UserError("wrap_with_set_grad_enabled takes a bool and a subgraph");
  }
  const c10::AutoGradMode mode(arguments.positional[0].leaf.toBool());
  return runner_of(arguments.positional[1], plan).run(rest(arguments, 2));
}

// wrap(subgraph, *operands): what surrounds a region says how it is compiled, not what it computes.
Value run_wrapped(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.empty()) throw UserError("a subgraph is missing");
  return runner_of(arguments.positional[0], plan).run(rest(arguments, 1));
}

// hints_wrapper(subgraph, operands, kwargs, hints)
Value run_with_hints(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.empty()) throw UserError("a subgraph is missing");
  return runner_of(arguments.positional[0], plan).run(operands(arguments, 1));
}

// wrap_with_autocast(device_type, dtype, enabled, cache_enabled, subgraph, *operands)
Value run_with_autocast(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.size() < 5) throw UserError("wrap_with_autocast takes a subgraph");
  const TorchFunction* enter = find_torch_function("torch.amp.autocast_mode._enter_autocast");
  const TorchFunction* leave = find_torch_function("torch.amp.autocast_mode._exit_autocast");
  internal_check(enter != nullptr && leave != nullptr, "autocast is among the functions");
  const Arguments settings{{arguments.positional.begin(), arguments.positional.begin() + 4}, {}};
  const Value token = enter->run(BoundArguments(enter->name, enter->parameters, settings));
  const auto close = [&] {
    leave->run(BoundArguments(leave->name, leave->parameters, {{token}, {}}));
  };
  try {
    Value result = runner_of(arguments.positional[4], plan).run(rest(arguments, 5));
    close();
    return result;
  } catch (...) {
    close();
    throw;
  }
}

// autograd_function_apply(forward, backward, *operands, ...): forward gives (result, saved values).
// Its own backward is not used here, so gradients through it would be those of its operators.
Value run_autograd_function(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.size() < 2) throw UserError("autograd_function_apply takes subgraphs");
  if (c10::GradMode::is_enabled()) {
    for (const Value& operand : rest(arguments, 2)) {
      if (operand.is_tensor() && operand.leaf.toTensor().requires_grad()) {
        throw UserError("gradients of a custom autograd function need a Python process",
                        "--stack torch runs the file");
      }
    }
  }
  const GraphRunner& forward = runner_of(arguments.positional[0], plan);
  std::vector<Value> inputs = rest(arguments, 2);
  // Before PyTorch 2.10 the first input is the function's `ctx`, which the graph does not use.
  if (arguments.positional[0].graph->placeholders().size() == inputs.size() + 1) {
    inputs.insert(inputs.begin(), Value());
  }
  const std::vector<Value> results = unpack(forward.run(std::move(inputs)));
  if (results.empty()) throw UserError("the forward of a custom autograd function returns nothing");
  return results[0];
}

// map_impl(body, mapped, additional): the body for each slice, results stacked.
Value run_map(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.size() < 2) throw UserError("map takes a subgraph and values");
  const GraphRunner& body = runner_of(arguments.positional[0], plan);
  const std::vector<Value> mapped = operands(arguments, 1);
  const std::vector<Value> additional = operands(arguments, 2);
  if (mapped.empty() || !mapped[0].is_tensor() || mapped[0].leaf.toTensor().dim() == 0) {
    throw UserError("map takes tensors with at least one dimension");
  }
  const std::int64_t count = mapped[0].leaf.toTensor().size(0);
  std::vector<std::vector<at::Tensor>> columns;
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<Value> inputs;
    for (const Value& value : mapped) {
      inputs.emplace_back(c10::IValue(value.leaf.toTensor().select(0, i)));
    }
    inputs.insert(inputs.end(), additional.begin(), additional.end());
    const std::vector<Value> results = unpack(body.run(std::move(inputs)));
    columns.resize(results.size());
    for (std::size_t j = 0; j < results.size(); ++j) {
      columns[j].push_back(results[j].leaf.toTensor());
    }
  }
  std::vector<Value> stacked;
  for (const auto& column : columns) stacked.emplace_back(c10::IValue(at::stack(column)));
  return Value::sequence(Value::Kind::tuple, std::move(stacked));
}

// A row of an associative scan: one slice of each value.
using Row = std::vector<Value>;

// Combines neighbors, scans what that gives, and combines again for the rows between: the order in
// which eager adds up, which rounding shows.
std::vector<Row> scan_rows(const std::vector<Row>& rows,
                           const std::function<Row(const Row&, const Row&)>& combine) {
  if (rows.size() < 2) return rows;
  std::vector<Row> pairs;
  for (std::size_t i = 0; i + 1 < rows.size(); i += 2) {
    pairs.push_back(combine(rows[i], rows[i + 1]));
  }
  const std::vector<Row> odd = scan_rows(pairs, combine);
  std::vector<Row> scanned = {rows[0]};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    scanned.push_back(i % 2 == 1 ? odd[i / 2] : combine(odd[i / 2 - 1], rows[i]));
  }
  return scanned;
}

// associative_scan(combine, scanned, additional): combine takes two rows and what is additional.
Value run_associative_scan(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.size() < 2) throw UserError("associative_scan takes a subgraph");
  const GraphRunner& body = runner_of(arguments.positional[0], plan);
  const std::vector<Value> scanned = operands(arguments, 1);
  const std::vector<Value> additional = operands(arguments, 2);
  std::vector<Row> rows;
  for (const Value& value : scanned) {
    if (!value.is_tensor() || value.leaf.toTensor().dim() == 0) {
      throw UserError("associative_scan takes tensors with at least one dimension");
    }
    const at::Tensor& tensor = value.leaf.toTensor();
    rows.resize(static_cast<std::size_t>(tensor.size(0)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].emplace_back(c10::IValue(tensor.select(0, static_cast<std::int64_t>(i))));
    }
  }
  if (rows.empty()) return arguments.positional[1];
  const std::vector<Row> results = scan_rows(rows, [&](const Row& left, const Row& right) {
    std::vector<Value> inputs = left;
    inputs.insert(inputs.end(), right.begin(), right.end());
    inputs.insert(inputs.end(), additional.begin(), additional.end());
    return unpack(body.run(std::move(inputs)));
  });
  std::vector<Value> stacked;
  for (std::size_t j = 0; j < results[0].size(); ++j) {
    std::vector<at::Tensor> column;
    for (const Row& row : results) column.push_back(row.at(j).leaf.toTensor());
    stacked.emplace_back(c10::IValue(at::stack(column)));
  }
  return Value::sequence(Value::Kind::tuple, std::move(stacked));
}

// ---- operators as arguments ----

// Calls the operator that the argument at `at` names with what follows it.
Value call_named(const Arguments& arguments, std::size_t at) {
  if (arguments.positional.size() <= at || arguments.positional[at].kind != Value::Kind::name) {
    throw UserError("expected the name of an operator");
  }
  const std::string name = arguments.positional[at].leaf.toStringRef();
  const Resolution found = resolve(graph::Op::call_function, graph::Target(name));
  return call(found, {rest(arguments, at + 1), arguments.keywords}, name);
}

at::Generator cpu_generator() {
  return at::globalContext().defaultGenerator(c10::Device(c10::DeviceType::CPU));
}

at::Tensor generator_state() {
  at::Generator generator = cpu_generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

// A GPU's state is a seed and an offset; it has the seed's draws here.
void set_generator_state(const at::Tensor& state) {
  const at::Tensor current = generator_state();
  at::Generator generator = cpu_generator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  if (state.scalar_type() == current.scalar_type() && state.sizes() == current.sizes()) {
    try {
      generator.set_state(state);
      return;
    } catch (const c10::Error&) {
      // Synthesized bytes are no state.
    }
  }
  std::uint64_t seed = 0;
  const at::Tensor bytes = state.contiguous();
  std::memcpy(&seed, bytes.data_ptr(), std::min(sizeof(seed), bytes.nbytes()));
  generator.set_current_seed(seed);
}

// A graph draws from the default generator where it is called. The state that a trace saves would
// be a constant of it, and the one that a trace sets would not be set again.
void refuse_state_in_trace(const char* name) {
  if (Recorder::active() == nullptr) return;
  throw TraceError(std::string("torch.ops.higher_order.") + name +
                       " saves or sets the state of a random generator, which a graph cannot do",
                   "the backend eager runs it");
}

// run_and_save_rng_state(op, *args): the state before, and the result.
Value run_and_save_state(const Arguments& arguments, const RunPlan&) {
  refuse_state_in_trace("run_and_save_rng_state");
  Value state = c10::IValue(generator_state());
  Value result = call_named(arguments, 0);
  return Value::sequence(Value::Kind::tuple, {std::move(state), std::move(result)});
}

// run_with_rng_state(state, op, *args): draws again what the state gave, and changes no later draw.
Value run_with_state(const Arguments& arguments, const RunPlan&) {
  if (arguments.positional.empty() || !arguments.positional[0].is_tensor()) {
    throw UserError("run_with_rng_state takes a generator's state");
  }
  refuse_state_in_trace("run_with_rng_state");
  const at::Tensor current = generator_state();
  set_generator_state(arguments.positional[0].leaf.toTensor());
  try {
    Value result = call_named(arguments, 1);
    set_generator_state(current);
    return result;
  } catch (...) {
    set_generator_state(current);
    throw;
  }
}

// graphsafe_run_with_rng_state(op, *args, rng_state=generator)
Value run_with_generator(const Arguments& arguments, const RunPlan&) {
  Arguments given = arguments;
  const auto found = std::ranges::find(given.keywords, "rng_state", &Keyword::name);
  if (found == given.keywords.end() || !found->value.is_leaf() ||
      !found->value.leaf.isGenerator()) {
    throw UserError("graphsafe_run_with_rng_state takes a generator as rng_state");
  }
  refuse_state_in_trace("graphsafe_run_with_rng_state");
  at::Generator generator = found->value.leaf.toGenerator();
  given.keywords.erase(found);
  const at::Tensor current = generator_state();
  set_generator_state(generator.get_state());
  try {
    Value result = call_named(given, 0);
    generator.set_state(generator_state());
    set_generator_state(current);
    return result;
  } catch (...) {
    set_generator_state(current);
    throw;
  }
}

// with_effects(token, op, *args): the token orders calls, which a list of steps does already.
Value run_with_effects(const Arguments& arguments, const RunPlan&) {
  if (arguments.positional.size() < 2) throw UserError("with_effects takes an operator");
  const Value result = call_named(arguments, 1);
  std::vector<Value> results = {arguments.positional[0]};
  if (result.is_sequence() || (result.is_leaf() && result.leaf.isTuple())) {
    for (Value& item : unpack(result)) results.push_back(std::move(item));
  } else {
    results.push_back(result);
  }
  return Value::sequence(Value::Kind::tuple, std::move(results));
}

// out_dtype(op, dtype, *args): the operator on operands of the dtype that the result has.
Value run_out_dtype(const Arguments& arguments, const RunPlan&) {
  if (arguments.positional.size() < 2 || arguments.positional[1].kind != Value::Kind::dtype) {
    throw UserError("out_dtype takes an operator and a dtype");
  }
  const auto dtype = static_cast<c10::ScalarType>(arguments.positional[1].leaf.toInt());
  Arguments given = arguments;
  given.positional.erase(given.positional.begin() + 1);
  for (std::size_t i = 1; i < given.positional.size(); ++i) {
    Value& operand = given.positional[i];
    if (operand.is_tensor()) operand = c10::IValue(operand.leaf.toTensor().to(dtype));
  }
  return call_named(given, 0);
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

// scan(body, initial, scanned, additional): the body gives the next carried values, then one slice
// of each result.
Value run_scan(const Arguments& arguments, const RunPlan& plan) {
  if (arguments.positional.size() < 3) throw UserError("scan takes a subgraph and values");
  const GraphRunner& body = runner_of(arguments.positional[0], plan);
  std::vector<Value> carried = operands(arguments, 1);
  const std::vector<Value> scanned = operands(arguments, 2);
  const std::vector<Value> additional = operands(arguments, 3);
  std::vector<std::vector<at::Tensor>> columns;
  std::int64_t count = 0;
  for (const Value& value : scanned) {
    if (!value.is_tensor() || value.leaf.toTensor().dim() == 0) {
      throw UserError("scan takes tensors with at least one dimension");
    }
    count = value.leaf.toTensor().size(0);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<Value> inputs = carried;
    for (const Value& value : scanned) {
      inputs.emplace_back(c10::IValue(value.leaf.toTensor().select(0, i)));
    }
    inputs.insert(inputs.end(), additional.begin(), additional.end());
    const std::vector<Value> results = unpack(body.run(std::move(inputs)));
    if (results.size() < carried.size()) throw UserError("the body of scan returns too little");
    const auto split = results.begin() + static_cast<std::ptrdiff_t>(carried.size());
    carried.assign(results.begin(), split);
    columns.resize(static_cast<std::size_t>(results.end() - split));
    for (std::size_t j = 0; j < columns.size(); ++j) {
      columns[j].push_back(split[static_cast<std::ptrdiff_t>(j)].leaf.toTensor());
    }
  }
  for (const auto& column : columns) carried.emplace_back(c10::IValue(at::stack(column)));
  return Value::sequence(Value::Kind::tuple, std::move(carried));
}

RunSubgraph runner_in(const RunPlan& plan) {
  return [&plan](const Value& subgraph, std::vector<Value> inputs) {
    return runner_of(subgraph, plan).run(std::move(inputs));
  };
}

Value run_flex_attention(const Arguments& arguments, const RunPlan& plan) {
  return flex_attention(arguments.positional, runner_in(plan));
}

Value run_flex_attention_backward(const Arguments& arguments, const RunPlan& plan) {
  return flex_attention_backward(arguments.positional, runner_in(plan));
}

// Texts of a program are no results.
Value print_nothing(const Arguments&, const RunPlan&) { return {}; }

struct HigherOrder {
  std::string_view name;
  Value (*run)(const Arguments&, const RunPlan&);
  bool takes_keywords = false;
};

constexpr std::array kHigherOrder = {
    HigherOrder{"associative_scan", run_associative_scan},
    HigherOrder{"auto_functionalized", run_auto_functionalized, true},
    HigherOrder{"auto_functionalized_v2", run_auto_functionalized_v2, true},
    HigherOrder{"autograd_function_apply", run_autograd_function, true},
    HigherOrder{"checkpoint", run_wrapped, true},
    HigherOrder{"cond", run_cond},
    HigherOrder{"flex_attention", run_flex_attention},
    HigherOrder{"flex_attention_backward", run_flex_attention_backward},
    HigherOrder{"foreach_map", run_wrapped, true},
    HigherOrder{"graphsafe_run_with_rng_state", run_with_generator, true},
    HigherOrder{"hints_wrapper", run_with_hints, true},
    HigherOrder{"invoke_subgraph", run_invoke_subgraph},
    HigherOrder{"invoke_quant", run_wrapped, true},
    HigherOrder{"invoke_quant_packed", run_wrapped, true},
    HigherOrder{"map_impl", run_map},
    HigherOrder{"out_dtype", run_out_dtype},
    HigherOrder{"print", print_nothing, true},
    HigherOrder{"run_and_save_rng_state", run_and_save_state, true},
    HigherOrder{"run_with_rng_state", run_with_state, true},
    HigherOrder{"scan", run_scan},
    HigherOrder{"strict_mode", run_with_hints},
    HigherOrder{"tag_activation_checkpoint", run_wrapped, true},
    HigherOrder{"while_loop", run_while_loop},
    HigherOrder{"with_effects", run_with_effects, true},
    HigherOrder{"wrap", run_wrapped},
    HigherOrder{"wrap_activation_checkpoint", run_wrapped, true},
    HigherOrder{"wrap_with_autocast", run_with_autocast},
    HigherOrder{"wrap_with_set_grad_enabled", run_with_grad_enabled},
};

// `torch.ops.higher_order.cond`; before 2.1, the functions of torch._prims.rng_prims.
const HigherOrder* find_higher_order(std::string_view target) {
  for (const std::string_view module : {"torch.ops.higher_order.", "torch._prims.rng_prims."}) {
    if (!target.starts_with(module)) continue;
    const auto* found =
        std::ranges::find(kHigherOrder, target.substr(module.size()), &HigherOrder::name);
    if (found != kHigherOrder.end()) return found;
  }
  return nullptr;
}

}  // namespace

bool is_higher_order(const graph::Target& target) {
  return find_higher_order(target.name()) != nullptr;
}

Value run_higher_order(const graph::Target& target, const Arguments& arguments,
                       const RunPlan& plan) {
  const HigherOrder* found = find_higher_order(target.name());
  internal_check(found != nullptr, "only known higher-order operators are planned");
  if (!arguments.keywords.empty() && !found->takes_keywords) {
    throw UserError(target.name() + " takes no keyword arguments");
  }
  return found->run(arguments, plan);
}

}  // namespace assay::aten
