// Python's builtin functions on the values of a graph: `len`, `max`, `int`, `getattr`, ...
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/python_operators.h"
#include "aten/functions/tables.h"
#include "aten/functions/tensor_attributes.h"

namespace assay::aten {

namespace {

// `iter(value)`: a tensor gives its rows.
std::vector<Value> iterate(const Value& value) {
  if (!value.is_tensor()) return unpack(value);
  if (value.leaf.toTensor().dim() == 0) throw UserError("iteration over a 0-d tensor");
  return unpack(run("aten::unbind", {value, 0}));
}

// The first of the largest (or smallest); comparing tensors asks for their truth, as in Python.
Value extreme(const BoundArguments& arguments, Comparison beats) {
  std::vector<Value> candidates = unpack(arguments["candidates"]);
  if (candidates.size() == 1) candidates = iterate(candidates.front());
  if (candidates.empty()) throw UserError("max() or min() of an empty sequence");
  Value best = candidates.front();
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (truth_of(apply_comparison(beats, candidates[i], best))) best = candidates[i];
  }
  return best;
}

Value sum_items(const BoundArguments& arguments) {
  Value total = arguments["start"];
  for (const Value& item : iterate(arguments["iterable"])) {
    total = apply_operator(BinaryOperation::add, "+", total, item);
  }
  return total;
}

Value length(const BoundArguments& arguments) {
  const Value& value = arguments["value"];
  if (value.is_tensor()) {
    const at::Tensor& tensor = value.leaf.toTensor();
    if (tensor.dim() == 0) throw UserError("len() of a 0-d tensor");
    return c10::IValue(tensor.size(0));
  }
  if (value.is_string())
    return c10::IValue(static_cast<std::int64_t>(value.leaf.toStringRef().size()));
  if (value.kind == Value::Kind::dict) {
    return c10::IValue(static_cast<std::int64_t>(value.items.size()));
  }
  return c10::IValue(static_cast<std::int64_t>(unpack(value).size()));
}

Value number_in(const Value& value) {
  return value.is_tensor() ? Value(c10::IValue(value.leaf.toTensor().item())) : value;
}

Value to_integer(const BoundArguments& arguments) {
  return c10::IValue(number_to_integer(number_in(arguments["value"])));
}

Value to_float(const BoundArguments& arguments) {
  return c10::IValue(number_to_float(number_in(arguments["value"])));
}

Value to_bool(const BoundArguments& arguments) { return c10::IValue(truth_of(arguments["value"])); }

Value to_index(const BoundArguments& arguments) {
  const Value number = number_in(arguments["value"]);
  if (!number.is_int() && !number.is_bool()) {
    throw UserError("'" + type_name(number) + "' object cannot be interpreted as an integer");
  }
  return c10::IValue(number_to_integer(number));
}

Value round_value(const BoundArguments& arguments) {
  if (arguments["value"].is_tensor()) throw UserError("round() of a Tensor is not supported");
  return round_number(arguments["value"], arguments["ndigits"]);
}

// `b in a`; a tensor looks for the value among all its own.
Value contains(const BoundArguments& arguments) {
  const Value& container = arguments["a"];
  const Value& wanted = arguments["b"];
  if (container.is_tensor()) {
    const Value equal = apply_comparison(Comparison::equal, wanted, container);
    return c10::IValue(tensor_of(equal).any().item<bool>());
  }
  for (const Value& item : unpack(container)) {
    if (truth_of(apply_comparison(Comparison::equal, item, wanted))) return c10::IValue(true);
  }
  return c10::IValue(false);
}

Value read_attribute(const BoundArguments& arguments) {
  const auto default_value = unpack(arguments["default"]);
  if (!default_value.empty()) {
    throw NeedsPythonError("getattr() with a default needs a Python process");
  }
  return get_attribute(arguments["object"], arguments.text("name"));
}

Value make_slice(const BoundArguments& arguments) {
  std::vector<Value> bounds = unpack(arguments["bounds"]);
  if (bounds.empty() || bounds.size() > 3) throw UserError("slice() takes 1 to 3 arguments");
  if (bounds.size() == 1) bounds.insert(bounds.begin(), Value());
  bounds.resize(3);
  return Value::sequence(Value::Kind::slice, std::move(bounds));
}

constexpr std::array kBuiltinFunctions = std::to_array<TorchFunction>({
    {"getattr", "object, name, *default", read_attribute},
    {"len", "value", length},
    {"max", "*candidates",
     [](const BoundArguments& arguments) { return extreme(arguments, Comparison::greater); }},
    {"min", "*candidates",
     [](const BoundArguments& arguments) { return extreme(arguments, Comparison::less); }},
    {"sum", "iterable, start=0", sum_items},
    {"abs", "value",
     [](const BoundArguments& arguments) {
       const Value& value = arguments["value"];
       return value.is_tensor() ? run("aten::abs", {value}) : absolute_number(value);
     }},
    {"int", "value=0", to_integer},
    {"float", "value=0.0", to_float},
    {"bool", "value=False", to_bool},
    {"round", "value, ndigits=None", round_value},
    {"pow", "base, exponent",
     [](const BoundArguments& arguments) {
       return apply_operator(BinaryOperation::power, "pow()", arguments["base"],
                             arguments["exponent"]);
     }},
    {"divmod", "a, b",
     [](const BoundArguments& arguments) {
       return tuple_of(
           {apply_operator(BinaryOperation::floor_divide, "divmod()", arguments["a"],
                           arguments["b"]),
            apply_operator(BinaryOperation::modulo, "divmod()", arguments["a"], arguments["b"])});
     }},
    {"tuple", "iterable=()",
     [](const BoundArguments& arguments) { return tuple_of(iterate(arguments["iterable"])); }},
    {"list", "iterable=()",
     [](const BoundArguments& arguments) { return list_of(iterate(arguments["iterable"])); }},
    {"torch.Size", "iterable=()",
     [](const BoundArguments& arguments) { return tuple_of(iterate(arguments["iterable"])); }},
    {"slice", "*bounds", make_slice},
    {"operator.index", "value", to_index},
    {"operator.contains", "a, b", contains},
});

// What the builtins call, also on plain numbers: FX writes `truediv.__round__()`.
constexpr std::array kBuiltinMethods = std::to_array<TorchFunction>({
    {"__len__", "value", length},
    {"__int__", "value", to_integer},
    {"__float__", "value", to_float},
    {"__bool__", "value", to_bool},
    {"__index__", "value", to_index},
    {"__round__", "value, ndigits=None", round_value},
    {"__contains__", "a, b", contains},
});

}  // namespace

FunctionTable builtin_functions() { return kBuiltinFunctions; }
FunctionTable builtin_methods() { return kBuiltinMethods; }

}  // namespace assay::aten
