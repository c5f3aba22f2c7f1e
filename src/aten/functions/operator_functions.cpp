// The `operator` module, and the methods that Python's operators call (`__add__`, `__radd__`, ...).
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/python_operators.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

template <BinaryOperation operation, bool in_place>
Value run_binary(const BoundArguments& arguments) {
  return apply_operator(operation, arguments.function(), arguments["a"], arguments["b"], in_place);
}

template <Comparison comparison>
Value run_compare(const BoundArguments& arguments) {
  return apply_comparison(comparison, arguments["a"], arguments["b"]);
}

// `a.__radd__(b)`.
template <BinaryOperation operation>
Value run_reflected(const BoundArguments& arguments) {
  return apply_reflected(operation, arguments.function(), arguments["a"], arguments["b"]);
}

Value unary(const Value& value, const char* tensor_name, Value (*number)(const Value&)) {
  return value.is_tensor() ? run(tensor_name, {value}) : number(value);
}

Value run_negative(const BoundArguments& arguments) {
  return unary(arguments["a"], "aten::neg", negate_number);
}

Value run_positive(const BoundArguments& arguments) {
  return unary(arguments["a"], "aten::positive", positive_number);
}

Value run_absolute(const BoundArguments& arguments) {
  return unary(arguments["a"], "aten::abs", absolute_number);
}

Value run_invert(const BoundArguments& arguments) {
  return unary(arguments["a"], "aten::bitwise_not", invert_number);
}

using Operation = BinaryOperation;

constexpr std::array kOperatorFunctions = std::to_array<TorchFunction>({
    {"operator.add", "a, b", run_binary<Operation::add, false>},
    {"operator.sub", "a, b", run_binary<Operation::subtract, false>},
    {"operator.mul", "a, b", run_binary<Operation::multiply, false>},
    {"operator.truediv", "a, b", run_binary<Operation::true_divide, false>},
    {"operator.floordiv", "a, b", run_binary<Operation::floor_divide, false>},
    {"operator.mod", "a, b", run_binary<Operation::modulo, false>},
    {"operator.pow", "a, b", run_binary<Operation::power, false>},
    {"operator.matmul", "a, b", run_binary<Operation::matrix_multiply, false>},
    {"operator.lshift", "a, b", run_binary<Operation::left_shift, false>},
    {"operator.rshift", "a, b", run_binary<Operation::right_shift, false>},
    {"operator.and_", "a, b", run_binary<Operation::bit_and, false>},
    {"operator.or_", "a, b", run_binary<Operation::bit_or, false>},
    {"operator.xor", "a, b", run_binary<Operation::bit_xor, false>},
    {"operator.concat", "a, b", run_binary<Operation::add, false>},
    {"operator.iadd", "a, b", run_binary<Operation::add, true>},
    {"operator.isub", "a, b", run_binary<Operation::subtract, true>},
    {"operator.imul", "a, b", run_binary<Operation::multiply, true>},
    {"operator.itruediv", "a, b", run_binary<Operation::true_divide, true>},
    {"operator.ifloordiv", "a, b", run_binary<Operation::floor_divide, true>},
    {"operator.imod", "a, b", run_binary<Operation::modulo, true>},
    {"operator.ipow", "a, b", run_binary<Operation::power, true>},
    {"operator.imatmul", "a, b", run_binary<Operation::matrix_multiply, true>},
    {"operator.ilshift", "a, b", run_binary<Operation::left_shift, true>},
    {"operator.irshift", "a, b", run_binary<Operation::right_shift, true>},
    {"operator.iand", "a, b", run_binary<Operation::bit_and, true>},
    {"operator.ior", "a, b", run_binary<Operation::bit_or, true>},
    {"operator.ixor", "a, b", run_binary<Operation::bit_xor, true>},
    {"operator.eq", "a, b", run_compare<Comparison::equal>},
    {"operator.ne", "a, b", run_compare<Comparison::not_equal>},
    {"operator.lt", "a, b", run_compare<Comparison::less>},
    {"operator.le", "a, b", run_compare<Comparison::less_equal>},
    {"operator.gt", "a, b", run_compare<Comparison::greater>},
    {"operator.ge", "a, b", run_compare<Comparison::greater_equal>},
    {"operator.is_", "a, b",
     [](const BoundArguments& arguments)
         -> Value { return c10::IValue(is_same_object(arguments["a"], arguments["b"])); }},
    {"operator.is_not", "a, b",
     [](const BoundArguments& arguments)
         -> Value { return c10::IValue(!is_same_object(arguments["a"], arguments["b"])); }},
    {"operator.neg", "a", run_negative},
    {"operator.pos", "a", run_positive},
    {"operator.abs", "a", run_absolute},
    {"operator.invert", "a", run_invert},
    {"operator.inv", "a", run_invert},
    {"operator.not_", "a",
     [](const BoundArguments& arguments)
         -> Value { return c10::IValue(!truth_of(arguments["a"])); }},
    {"operator.truth", "a",
     [](const BoundArguments& arguments)
         -> Value { return c10::IValue(truth_of(arguments["a"])); }},
});

constexpr std::array kOperatorMethods = std::to_array<TorchFunction>({
    {"__add__", "a, b", run_binary<Operation::add, false>},
    {"__sub__", "a, b", run_binary<Operation::subtract, false>},
    {"__mul__", "a, b", run_binary<Operation::multiply, false>},
    {"__truediv__", "a, b", run_binary<Operation::true_divide, false>},
    {"__div__", "a, b", run_binary<Operation::true_divide, false>},
    {"__floordiv__", "a, b", run_binary<Operation::floor_divide, false>},
    {"__mod__", "a, b", run_binary<Operation::modulo, false>},
    {"__pow__", "a, b", run_binary<Operation::power, false>},
    {"__matmul__", "a, b", run_binary<Operation::matrix_multiply, false>},
    {"__lshift__", "a, b", run_binary<Operation::left_shift, false>},
    {"__rshift__", "a, b", run_binary<Operation::right_shift, false>},
    {"__and__", "a, b", run_binary<Operation::bit_and, false>},
    {"__or__", "a, b", run_binary<Operation::bit_or, false>},
    {"__xor__", "a, b", run_binary<Operation::bit_xor, false>},
    {"__radd__", "a, b", run_reflected<Operation::add>},
    {"__rsub__", "a, b", run_reflected<Operation::subtract>},
    {"__rmul__", "a, b", run_reflected<Operation::multiply>},
    {"__rtruediv__", "a, b", run_reflected<Operation::true_divide>},
    {"__rdiv__", "a, b", run_reflected<Operation::true_divide>},
    {"__rfloordiv__", "a, b", run_reflected<Operation::floor_divide>},
    {"__rmod__", "a, b", run_reflected<Operation::modulo>},
    {"__rpow__", "a, b", run_reflected<Operation::power>},
    {"__rmatmul__", "a, b", run_reflected<Operation::matrix_multiply>},
    {"__rlshift__", "a, b", run_reflected<Operation::left_shift>},
    {"__rrshift__", "a, b", run_reflected<Operation::right_shift>},
    {"__rand__", "a, b", run_reflected<Operation::bit_and>},
    {"__ror__", "a, b", run_reflected<Operation::bit_or>},
    {"__rxor__", "a, b", run_reflected<Operation::bit_xor>},
    {"__iadd__", "a, b", run_binary<Operation::add, true>},
    {"__isub__", "a, b", run_binary<Operation::subtract, true>},
    {"__imul__", "a, b", run_binary<Operation::multiply, true>},
    {"__itruediv__", "a, b", run_binary<Operation::true_divide, true>},
    {"__idiv__", "a, b", run_binary<Operation::true_divide, true>},
    {"__ifloordiv__", "a, b", run_binary<Operation::floor_divide, true>},
    {"__imod__", "a, b", run_binary<Operation::modulo, true>},
    {"__ipow__", "a, b", run_binary<Operation::power, true>},
    {"__ilshift__", "a, b", run_binary<Operation::left_shift, true>},
    {"__irshift__", "a, b", run_binary<Operation::right_shift, true>},
    {"__iand__", "a, b", run_binary<Operation::bit_and, true>},
    {"__ior__", "a, b", run_binary<Operation::bit_or, true>},
    {"__ixor__", "a, b", run_binary<Operation::bit_xor, true>},
    {"__eq__", "a, b", run_compare<Comparison::equal>},
    {"__ne__", "a, b", run_compare<Comparison::not_equal>},
    {"__lt__", "a, b", run_compare<Comparison::less>},
    {"__le__", "a, b", run_compare<Comparison::less_equal>},
    {"__gt__", "a, b", run_compare<Comparison::greater>},
    {"__ge__", "a, b", run_compare<Comparison::greater_equal>},
    {"__neg__", "a", run_negative},
    {"__pos__", "a", run_positive},
    {"__abs__", "a", run_absolute},
    {"__invert__", "a", run_invert},
});

}  // namespace

FunctionTable operator_functions() { return kOperatorFunctions; }
FunctionTable operator_methods() { return kOperatorMethods; }

}  // namespace assay::aten
