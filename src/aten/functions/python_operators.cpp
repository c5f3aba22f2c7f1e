// The `operator` module: infix operators on tensors, numbers and sequences. Who answers follows
// Python's rules: the left operand's method, then the right operand's reflected one.
#include "aten/functions/python_operators.h"

#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

UserError unsupported(std::string_view symbol, const Value& left, const Value& right) {
  return UserError("unsupported operand types for " + std::string(symbol) + ": '" +
                   type_name(left) + "' and '" + type_name(right) + "'");
}

// Numbers reach add, sub, mul and div as 0-dim tensors, as they do from Python; for the others a
// number has an overload of its own. Direct calls: these are the commonest nodes of all.
at::Tensor tensor_first(BinaryOperation operation, const at::Tensor& left, const Value& right) {
  const bool is_tensor = right.is_tensor();
  switch (operation) {
    case BinaryOperation::add:
      return left.add(tensor_or_wrapped(right));
    case BinaryOperation::subtract:
      return left.sub(tensor_or_wrapped(right));
    case BinaryOperation::multiply:
      return left.mul(tensor_or_wrapped(right));
    case BinaryOperation::true_divide:
      return left.div(tensor_or_wrapped(right));
    case BinaryOperation::matrix_multiply:
      return left.matmul(tensor_of(right));
    case BinaryOperation::floor_divide:
      return is_tensor ? left.floor_divide(tensor_of(right)) : left.floor_divide(scalar_of(right));
    case BinaryOperation::modulo:
      return is_tensor ? left.remainder(tensor_of(right)) : left.remainder(scalar_of(right));
    case BinaryOperation::power:
      return is_tensor ? left.pow(tensor_of(right)) : left.pow(scalar_of(right));
    case BinaryOperation::left_shift:
      return is_tensor ? left.__lshift__(tensor_of(right)) : left.__lshift__(scalar_of(right));
    case BinaryOperation::right_shift:
      return is_tensor ? left.__rshift__(tensor_of(right)) : left.__rshift__(scalar_of(right));
    case BinaryOperation::bit_and:
      return is_tensor ? left.__and__(tensor_of(right)) : left.__and__(scalar_of(right));
    case BinaryOperation::bit_or:
      return is_tensor ? left.__or__(tensor_of(right)) : left.__or__(scalar_of(right));
    case BinaryOperation::bit_xor:
      return is_tensor ? left.__xor__(tensor_of(right)) : left.__xor__(scalar_of(right));
  }
  throw InternalError("an unknown operation");
}

// nullptr where Python has no in-place form and binds the name to a new value.
const char* in_place_operator(BinaryOperation operation) {
  switch (operation) {
    case BinaryOperation::add:
      return "aten::add_";
    case BinaryOperation::subtract:
      return "aten::sub_";
    case BinaryOperation::multiply:
      return "aten::mul_";
    case BinaryOperation::true_divide:
      return "aten::div_";
    case BinaryOperation::floor_divide:
      return "aten::floor_divide_";
    case BinaryOperation::modulo:
      return "aten::remainder_";
    case BinaryOperation::power:
      return "aten::pow_";
    case BinaryOperation::left_shift:
      return "aten::__ilshift__";
    case BinaryOperation::right_shift:
      return "aten::__irshift__";
    case BinaryOperation::bit_and:
      return "aten::__iand__";
    case BinaryOperation::bit_or:
      return "aten::__ior__";
    case BinaryOperation::bit_xor:
      return "aten::__ixor__";
    case BinaryOperation::matrix_multiply:
      return nullptr;
  }
  throw InternalError("an unknown operation");
}

Value tensor_in_place(BinaryOperation operation, const Value& left, const Value& right) {
  const char* op = in_place_operator(operation);
  if (op == nullptr) return Operand(tensor_first(operation, tensor_of(left), right)).value;
  const bool number_as_tensor =
      operation == BinaryOperation::add || operation == BinaryOperation::subtract ||
      operation == BinaryOperation::multiply || operation == BinaryOperation::true_divide;
  return number_as_tensor ? run(op, {left, tensor_or_wrapped(right)}) : run(op, {left, right});
}

// `right.__radd__(left)` and so on: Tensor's reflected methods, which answer `number + tensor`.
Value tensor_second(BinaryOperation operation, const Value& left, const Value& right) {
  switch (operation) {
    case BinaryOperation::add:
    case BinaryOperation::multiply:
    case BinaryOperation::bit_and:
    case BinaryOperation::bit_or:
    case BinaryOperation::bit_xor:
      return Operand(tensor_first(operation, tensor_of(right), left)).value;
    case BinaryOperation::subtract:
      return run("aten::rsub", {right, left});
    case BinaryOperation::true_divide:
      return run("aten::mul", {run_tensor("aten::reciprocal", {right}), tensor_or_wrapped(left)});
    case BinaryOperation::floor_divide:
      return run("aten::floor_divide", {tensor_or_wrapped(left), right});
    case BinaryOperation::modulo:
      return run("aten::remainder", {left, right});
    case BinaryOperation::power:
      return run("aten::pow", {left, right});
    case BinaryOperation::left_shift:
      return run("aten::bitwise_left_shift", {left, right});
    case BinaryOperation::right_shift:
      return run("aten::bitwise_right_shift", {left, right});
    case BinaryOperation::matrix_multiply:
      if (left.is_tensor()) return run("aten::matmul", {left, right});
      break;
  }
  throw unsupported("@", left, right);
}

bool is_operand(const Value& value) { return value.is_tensor() || value.is_number(); }

Value::Kind sequence_kind(const Value& value) {
  // An operator's list result is a tuple or a list in Python; either way only its items matter.
  return value.kind == Value::Kind::list ? Value::Kind::list : Value::Kind::tuple;
}

Value concatenate(const Value& left, const Value& right) {
  std::vector<Value> items = unpack(left);
  for (Value& item : unpack(right)) items.push_back(std::move(item));
  return Value::sequence(sequence_kind(left), std::move(items));
}

Value repeat_sequence(const Value& sequence, const Value& count) {
  const std::vector<Value> once = unpack(sequence);
  std::vector<Value> items;
  for (std::int64_t i = 0; i < number_to_integer(count); ++i) {
    items.insert(items.end(), once.begin(), once.end());
  }
  return Value::sequence(sequence_kind(sequence), std::move(items));
}

at::Tensor compare_tensor(Comparison comparison, const at::Tensor& left, const Value& right) {
  const bool is_tensor = right.is_tensor();
  switch (comparison) {
    case Comparison::equal:
      return is_tensor ? left.eq(tensor_of(right)) : left.eq(scalar_of(right));
    case Comparison::not_equal:
      return is_tensor ? left.ne(tensor_of(right)) : left.ne(scalar_of(right));
    case Comparison::less:
      return is_tensor ? left.lt(tensor_of(right)) : left.lt(scalar_of(right));
    case Comparison::less_equal:
      return is_tensor ? left.le(tensor_of(right)) : left.le(scalar_of(right));
    case Comparison::greater:
      return is_tensor ? left.gt(tensor_of(right)) : left.gt(scalar_of(right));
    case Comparison::greater_equal:
      return is_tensor ? left.ge(tensor_of(right)) : left.ge(scalar_of(right));
  }
  throw InternalError("an unknown comparison");
}

// `1 < x` asks x whether it is greater than 1.
Comparison reflected(Comparison comparison) {
  switch (comparison) {
    case Comparison::less:
      return Comparison::greater;
    case Comparison::less_equal:
      return Comparison::greater_equal;
    case Comparison::greater:
      return Comparison::less;
    case Comparison::greater_equal:
      return Comparison::less_equal;
    default:
      return comparison;
  }
}

// Equality of values that are neither tensors nor numbers; sequences item by item.
bool are_equal(const Value& left, const Value& right) {
  if (left.is_tensor() || right.is_tensor()) {
    throw UserError("tensors inside containers cannot be compared here");
  }
  if (left.is_number() && right.is_number()) {
    return compare_numbers(Comparison::equal, left, right);
  }
  if (holds_sequence(left) && holds_sequence(right)) {
    // A list never equals a tuple; what an operator returned may be either.
    if (left.is_sequence() && right.is_sequence() && left.kind != right.kind) return false;
    const std::vector<Value> left_items = unpack(left);
    const std::vector<Value> right_items = unpack(right);
    if (left_items.size() != right_items.size()) return false;
    for (std::size_t i = 0; i < left_items.size(); ++i) {
      if (!are_equal(left_items[i], right_items[i])) return false;
    }
    return true;
  }
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Value::Kind::leaf:
    case Value::Kind::dtype:
    case Value::Kind::layout:
    case Value::Kind::memory_format:
    case Value::Kind::name:
      return left.leaf.tagKind() == right.leaf.tagKind() && left.leaf == right.leaf;
    case Value::Kind::ellipsis:
      return true;
    default:
      throw UserError("values of type " + type_name(left) + " cannot be compared here");
  }
}

}  // namespace

Value apply_operator(BinaryOperation operation, std::string_view symbol, const Value& left,
                     const Value& right, bool in_place) {
  if (is_operand(left) && is_operand(right)) {
    if (left.is_tensor() && in_place) return tensor_in_place(operation, left, right);
    if (left.is_tensor()) return Operand(tensor_first(operation, tensor_of(left), right)).value;
    if (right.is_tensor()) return tensor_second(operation, left, right);
    return calculate(operation, left, right);
  }
  // `a += [b]` changes the list that other names may hold too; values here are never shared.
  const bool changes_list = in_place && left.kind == Value::Kind::list;
  if (operation == BinaryOperation::add && !changes_list) {
    if (holds_sequence(left) && holds_sequence(right)) return concatenate(left, right);
    if (left.is_string() && right.is_string()) {
      return c10::IValue(left.leaf.toStringRef() + right.leaf.toStringRef());
    }
  }
  if (operation == BinaryOperation::multiply && !changes_list) {
    const auto is_count = [](const Value& value) { return value.is_int() || value.is_bool(); };
    if (holds_sequence(left) && is_count(right)) return repeat_sequence(left, right);
    if (is_count(left) && holds_sequence(right)) return repeat_sequence(right, left);
  }
  throw unsupported(symbol, left, right);
}

Value apply_comparison(Comparison comparison, const Value& left, const Value& right) {
  if (is_operand(left) && is_operand(right)) {
    if (left.is_tensor()) return Operand(compare_tensor(comparison, tensor_of(left), right)).value;
    if (right.is_tensor()) {
      return Operand(compare_tensor(reflected(comparison), tensor_of(right), left)).value;
    }
    return c10::IValue(compare_numbers(comparison, left, right));
  }
  if (comparison == Comparison::equal || comparison == Comparison::not_equal) {
    // A tensor is never equal to something that cannot be an operand: `x == None` is False.
    const bool equal = !left.is_tensor() && !right.is_tensor() && are_equal(left, right);
    return c10::IValue(equal == (comparison == Comparison::equal));
  }
  throw unsupported("a comparison", left, right);
}

namespace {

bool is_same(const Value& left, const Value& right) {
  if (left.is_tensor() && right.is_tensor()) {
    return left.leaf.toTensor().unsafeGetTensorImpl() ==
           right.leaf.toTensor().unsafeGetTensorImpl();
  }
  if (left.is_tensor() != right.is_tensor() || left.is_none() || right.is_none()) {
    return left.is_none() && right.is_none();
  }
  if ((left.is_bool() && right.is_bool()) || left.kind == Value::Kind::dtype) {
    return are_equal(left, right);
  }
  throw UserError("whether two values of type " + type_name(left) +
                  " are the same object is known to Python only");
}

template <BinaryOperation operation, bool in_place>
Value run_binary(const BoundArguments& arguments) {
  return apply_operator(operation, arguments.function(), arguments["a"], arguments["b"], in_place);
}

template <Comparison comparison>
Value run_compare(const BoundArguments& arguments) {
  return apply_comparison(comparison, arguments["a"], arguments["b"]);
}

// `b.__radd__(a)`: the operands in reverse.
template <BinaryOperation operation>
Value run_reflected(const BoundArguments& arguments) {
  if (arguments["a"].is_tensor() && is_operand(arguments["b"])) {
    return tensor_second(operation, arguments["b"], arguments["a"]);
  }
  return apply_operator(operation, arguments.function(), arguments["b"], arguments["a"]);
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

constexpr std::array kFunctions = std::to_array<TorchFunction>({
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
         -> Value { return c10::IValue(is_same(arguments["a"], arguments["b"])); }},
    {"operator.is_not", "a, b",
     [](const BoundArguments& arguments)
         -> Value { return c10::IValue(!is_same(arguments["a"], arguments["b"])); }},
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

constexpr std::array kMethods = std::to_array<TorchFunction>({
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

FunctionTable operator_functions() { return kFunctions; }
FunctionTable operator_methods() { return kMethods; }

}  // namespace assay::aten
