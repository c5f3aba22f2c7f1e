#include "aten/functions/python_operators.h"

#include <algorithm>

#include "assay/error.h"
#include "aten/functions/operand.h"

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

// `left += right` and so on. A matrix product has no such form: the name is bound to a new tensor.
Value tensor_in_place(BinaryOperation operation, const Value& left, const Value& right) {
  const at::Tensor self = tensor_of(left);
  switch (operation) {
    case BinaryOperation::add:
      self.add_(tensor_or_wrapped(right));
      return left;
    case BinaryOperation::subtract:
      self.sub_(tensor_or_wrapped(right));
      return left;
    case BinaryOperation::multiply:
      self.mul_(tensor_or_wrapped(right));
      return left;
    case BinaryOperation::true_divide:
      self.div_(tensor_or_wrapped(right));
      return left;
    case BinaryOperation::matrix_multiply:
      return Operand(self.matmul(tensor_of(right))).value;
    case BinaryOperation::floor_divide:
      return run("aten::floor_divide_", {left, right});
    case BinaryOperation::modulo:
      return run("aten::remainder_", {left, right});
    case BinaryOperation::power:
      return run("aten::pow_", {left, right});
    case BinaryOperation::left_shift:
      return run("aten::__ilshift__", {left, right});
    case BinaryOperation::right_shift:
      return run("aten::__irshift__", {left, right});
    case BinaryOperation::bit_and:
      return run("aten::__iand__", {left, right});
    case BinaryOperation::bit_or:
      return run("aten::__ior__", {left, right});
    case BinaryOperation::bit_xor:
      return run("aten::__ixor__", {left, right});
  }
  throw InternalError("an unknown operation");
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

// A graph's lists are sizes and tensors; a huge one is a mistake or an attack.
void check_length(std::size_t once, std::size_t times) {
  constexpr std::size_t kMostItems = 1'000'000;
  if (once > 0 && times > kMostItems / once) throw UserError("a list or string becomes too long");
}

Value concatenate(const Value& left, const Value& right) {
  std::vector<Value> items = unpack(left);
  std::vector<Value> more = unpack(right);
  check_length(items.size() + more.size(), 1);
  for (Value& item : more) items.push_back(std::move(item));
  return Value::sequence(sequence_kind(left), std::move(items));
}

Value concatenate_text(const Value& left, const Value& right) {
  const std::string& text = left.leaf.toStringRef();
  const std::string& more = right.leaf.toStringRef();
  check_length(text.size() + more.size(), 1);
  return c10::IValue(text + more);
}

Value repeat_sequence(const Value& sequence, const Value& count) {
  const std::vector<Value> once = unpack(sequence);
  const std::int64_t times = once.empty() ? 0 : number_to_integer(count);
  check_length(once.size(), static_cast<std::size_t>(std::max<std::int64_t>(times, 0)));
  std::vector<Value> items;
  for (std::int64_t i = 0; i < times; ++i) items.insert(items.end(), once.begin(), once.end());
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
    if (left.is_string() && right.is_string()) return concatenate_text(left, right);
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

Value apply_reflected(BinaryOperation operation, std::string_view symbol, const Value& self,
                      const Value& other) {
  if (self.is_tensor() && is_operand(other)) return tensor_second(operation, other, self);
  return apply_operator(operation, symbol, other, self);
}

bool is_same_object(const Value& left, const Value& right) {
  if (left.is_tensor() && right.is_tensor()) return tensor_of(left).is_same(tensor_of(right));
  if (left.is_tensor() || right.is_tensor()) return false;
  if (left.is_none() || right.is_none()) return left.is_none() && right.is_none();
  if ((left.is_bool() && right.is_bool()) || left.kind == Value::Kind::dtype) {
    return are_equal(left, right);
  }
  throw UserError("only Python knows whether two values of type " + type_name(left) +
                  " are the same object");
}

}  // namespace assay::aten
