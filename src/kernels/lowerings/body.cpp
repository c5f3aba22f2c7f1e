#include "kernels/lowerings/body.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "assay/error.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

bool gives_bool(Op op) {
  return op == Op::isnan || op == Op::isinf || op == Op::isfinite || op == Op::signbit;
}

// The number as the dtype holds it, so that nobody after us needs to round it.
c10::Scalar converted(const c10::Scalar& value, ScalarType dtype) {
  switch (dtype) {
    case ScalarType::Bool:
      return value.isFloatingPoint() ? value.toDouble() != 0 : value.to<std::int64_t>() != 0;
    case ScalarType::Double:
      return value.toDouble();
    case ScalarType::Float:
      return static_cast<double>(static_cast<float>(value.toDouble()));
    case ScalarType::Half:
      return static_cast<double>(
          static_cast<float>(c10::Half(static_cast<float>(value.toDouble()))));
    case ScalarType::BFloat16:
      return static_cast<double>(
          static_cast<float>(c10::BFloat16(static_cast<float>(value.toDouble()))));
    default:
      break;
  }
  const std::int64_t integer = value.isFloatingPoint() ? static_cast<std::int64_t>(value.toDouble())
                                                       : value.to<std::int64_t>();
  switch (dtype) {
    case ScalarType::Byte:
      return static_cast<std::int64_t>(static_cast<std::uint8_t>(integer));
    case ScalarType::Char:
      return static_cast<std::int64_t>(static_cast<std::int8_t>(integer));
    case ScalarType::Short:
      return static_cast<std::int64_t>(static_cast<std::int16_t>(integer));
    case ScalarType::Int:
      return static_cast<std::int64_t>(static_cast<std::int32_t>(integer));
    default:
      return integer;
  }
}

}  // namespace

Body::Body(std::string name, Sizes outer, const graph::Node& node) : loops_(outer) {
  kernel_.name = std::move(name);
  kernel_.outer = std::move(outer);
  kernel_.passes.emplace_back();
  kernel_.nodes = {&node};
}

void Body::begin_pass(Sizes inner) {
  if (!kernel_.passes.back().body.empty()) kernel_.passes.emplace_back();
  kernel_.passes.back().inner = inner;
  loops_ = kernel_.outer;
  loops_.append(inner.begin(), inner.end());
}

Index Body::index_of(const TensorRef& ref) const {
  if (ref.sizes.size() > loops_.size()) throw InternalError("a tensor with more sizes than loops");
  Index index{ref.offset, Sizes(loops_.size(), 0)};
  const std::size_t added = loops_.size() - ref.sizes.size();
  for (std::size_t i = 0; i < ref.sizes.size(); ++i) {
    if (ref.sizes[i] == loops_[added + i]) {
      index.coefficients[added + i] = ref.sizes[i] == 1 ? 0 : ref.strides[i];
    } else if (ref.sizes[i] != 1) {
      throw InternalError("a tensor's sizes do not broadcast to the loops");
    }
  }
  return index;
}

Index Body::index_of(const TensorRef& ref, std::span<const std::size_t> loops) {
  Index index{ref.offset, {}};
  for (std::size_t i = 0; i < ref.sizes.size(); ++i) {
    if (ref.sizes[i] == 1) continue;
    if (index.coefficients.size() <= loops[i]) index.coefficients.resize(loops[i] + 1, 0);
    index.coefficients[loops[i]] += ref.strides[i];
  }
  return index;
}

Value Body::add(Instruction instruction) {
  const Value value{this, next_++, instruction.dtype};
  kernel_.passes.back().body.push_back(std::move(instruction));
  return value;
}

Value Body::load(const TensorRef& ref, const Index& index) {
  return add({.op = Op::load, .dtype = ref.dtype, .buffer = ref.buffer, .index = index});
}

Value Body::load_if(const TensorRef& ref, const Index& index, std::vector<Condition> conditions,
                    Value otherwise) {
  return add({.op = Op::load,
              .dtype = ref.dtype,
              .operands = {cast(otherwise, ref.dtype).id},
              .buffer = ref.buffer,
              .index = index,
              .conditions = std::move(conditions)});
}

Value Body::load_at(const TensorRef& ref, const Index& index, Value offset) {
  return add({.op = Op::load_indirect,
              .dtype = ref.dtype,
              .operands = {offset.id},
              .buffer = ref.buffer,
              .index = index});
}

Value Body::load_at_if(const TensorRef& ref, const Index& index, Value offset, Value is_there,
                       Value otherwise) {
  return add({.op = Op::load_indirect,
              .dtype = ref.dtype,
              .operands = {offset.id, is_there.id, cast(otherwise, ref.dtype).id},
              .buffer = ref.buffer,
              .index = index});
}

void Body::store(const TensorRef& ref, const Index& index, Value value) {
  add({.op = Op::store,
       .dtype = ref.dtype,
       .operands = {cast(value, ref.dtype).id},
       .buffer = ref.buffer,
       .index = index});
}

void Body::store_at(const TensorRef& ref, const Index& index, Value value, Value offset) {
  add({.op = Op::store_indirect,
       .dtype = ref.dtype,
       .operands = {cast(value, ref.dtype).id, offset.id},
       .buffer = ref.buffer,
       .index = index});
}

void Body::add_at(const TensorRef& ref, const Index& index, Value value, Value offset) {
  add({.op = Op::add_indirect,
       .dtype = ref.dtype,
       .operands = {cast(value, ref.dtype).id, offset.id},
       .buffer = ref.buffer,
       .index = index});
}

Value Body::constant(const c10::Scalar& value, ScalarType dtype) {
  return add({.op = Op::constant, .dtype = dtype, .constant = converted(value, dtype)});
}

Value Body::index(const Index& index) {
  return add({.op = Op::index, .dtype = ScalarType::Long, .index = index});
}

Value Body::loop_index(std::size_t loop) {
  Index one;
  one.coefficients.resize(loop + 1, 0);
  one.coefficients[loop] = 1;
  return index(one);
}

Value Body::condition(std::vector<Condition> conditions) {
  return add({.op = Op::condition, .dtype = ScalarType::Bool, .conditions = std::move(conditions)});
}

Value Body::cast(Value value, ScalarType dtype) {
  if (value.dtype == dtype) return value;
  return add({.op = Op::cast, .dtype = dtype, .operands = {value.id}});
}

Value Body::bitcast(Value value, ScalarType dtype) {
  if (value.dtype == dtype) return value;
  return add({.op = Op::bitcast, .dtype = dtype, .operands = {value.id}});
}

Value Body::unary(Op op, Value value) {
  return add(
      {.op = op, .dtype = gives_bool(op) ? ScalarType::Bool : value.dtype, .operands = {value.id}});
}

Value Body::binary(Op op, Value left, Value right) {
  if (left.dtype != right.dtype) {
    throw InternalError(std::string("operands of ") + to_string(op) + " differ in dtype");
  }
  return add({.op = op, .dtype = left.dtype, .operands = {left.id, right.id}});
}

Value Body::compare(Op op, Value left, Value right) {
  if (left.dtype != right.dtype) {
    throw InternalError(std::string("operands of ") + to_string(op) + " differ in dtype");
  }
  return add({.op = op, .dtype = ScalarType::Bool, .operands = {left.id, right.id}});
}

Value Body::where(Value condition, Value yes, Value no) {
  if (condition.dtype != ScalarType::Bool || yes.dtype != no.dtype) {
    throw InternalError("operands of where differ in dtype");
  }
  return add({.op = Op::where, .dtype = yes.dtype, .operands = {condition.id, yes.id, no.id}});
}

Value Body::fma(Value left, Value right, Value addend) {
  return add({.op = Op::fma, .dtype = left.dtype, .operands = {left.id, right.id, addend.id}});
}

Value Body::reduce(Op op, Value value) {
  return add({.op = op, .dtype = value.dtype, .operands = {value.id}});
}

Value Body::reduce_position(Op op, Value value, Value position) {
  return add({.op = op, .dtype = ScalarType::Long, .operands = {value.id, position.id}});
}

Value Body::scan(Op op, Value value) { return reduce(op, value); }

void Body::check(Value condition, std::string message) {
  add({.op = Op::check,
       .dtype = ScalarType::Bool,
       .operands = {condition.id},
       .message = std::move(message)});
}

Value operator+(Value left, Value right) { return left.body->binary(Op::add, left, right); }
Value operator-(Value left, Value right) { return left.body->binary(Op::sub, left, right); }
Value operator*(Value left, Value right) { return left.body->binary(Op::mul, left, right); }
Value operator/(Value left, Value right) { return left.body->binary(Op::div, left, right); }
Value operator-(Value value) { return value.body->unary(Op::neg, value); }
Value operator<(Value left, Value right) { return left.body->compare(Op::lt, left, right); }
Value operator>(Value left, Value right) { return left.body->compare(Op::gt, left, right); }
Value operator<=(Value left, Value right) { return left.body->compare(Op::le, left, right); }
Value operator>=(Value left, Value right) { return left.body->compare(Op::ge, left, right); }
Value eq(Value left, Value right) { return left.body->compare(Op::eq, left, right); }
Value ne(Value left, Value right) { return left.body->compare(Op::ne, left, right); }
Value operator&(Value left, Value right) { return left.body->binary(Op::bitwise_and, left, right); }
Value operator|(Value left, Value right) { return left.body->binary(Op::bitwise_or, left, right); }
Value operator!(Value value) { return value.body->unary(Op::logical_not, value); }

Value constant_like(Value value, const c10::Scalar& number) {
  return value.body->constant(number, value.dtype);
}

Value where(Value condition, Value yes, Value no) {
  return condition.body->where(condition, yes, no);
}
Value where(Value condition, Value yes, double no) {
  return where(condition, yes, constant_like(yes, no));
}
Value where(Value condition, double yes, Value no) {
  return where(condition, constant_like(no, yes), no);
}
Value apply(Op op, Value value) { return value.body->unary(op, value); }
Value apply(Op op, Value left, Value right) { return left.body->binary(op, left, right); }
Value cast(Value value, ScalarType dtype) { return value.body->cast(value, dtype); }

}  // namespace assay::kernels
