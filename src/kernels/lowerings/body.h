/// \file Writes the instructions of one kernel: what lowerings are made of.
///
///     Body& body = call.kernel(sizes);
///     const Value x = body.load(ref);            // broadcast to the loops
///     body.store(result, exp(x) + 1.0);
///
/// Arithmetic needs operands of one dtype, and never half or bfloat16 (see ir.h): `load_as` and
/// `cast` convert. Stores convert to the buffer's dtype.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernels/ir.h"
#include "kernels/tensor_ref.h"

namespace assay::kernels {

class Body;

/// The result of an instruction.
struct Value {
  Body* body = nullptr;
  ValueId id = kNoValue;
  c10::ScalarType dtype = c10::ScalarType::Float;
};

class Body {
 public:
  Body(std::string name, Sizes outer, const graph::Node& node);

  /// Begins the next pass. The first one exists from the start, without inner loops.
  void begin_pass(Sizes inner = {});
  /// The sizes of the loops around the current pass's body: outer, then inner.
  const Sizes& loops() const { return loops_; }
  std::size_t outer_rank() const { return kernel_.outer.size(); }

  /// The index of a tensor whose dimensions are the last loops; sizes of 1 are broadcast.
  Index index_of(const TensorRef& ref) const;
  /// The index of a tensor whose dimension k runs with loop `loops[k]`.
  static Index index_of(const TensorRef& ref, std::span<const std::size_t> loops);

  Value load(const TensorRef& ref) { return load(ref, index_of(ref)); }
  Value load(const TensorRef& ref, const Index& index);
  /// `otherwise` where a condition does not hold; then memory is not touched.
  Value load_if(const TensorRef& ref, const Index& index, std::vector<Condition> conditions,
                Value otherwise);
  /// At `offset` (int64, in elements) from the index.
  Value load_at(const TensorRef& ref, const Index& index, Value offset);
  /// The same where `is_there` (bool) holds, otherwise `otherwise`.
  Value load_at_if(const TensorRef& ref, const Index& index, Value offset, Value is_there,
                   Value otherwise);
  void store(const TensorRef& ref, Value value) { store(ref, index_of(ref), value); }
  void store(const TensorRef& ref, const Index& index, Value value);
  void store_at(const TensorRef& ref, const Index& index, Value value, Value offset);
  void add_at(const TensorRef& ref, const Index& index, Value value, Value offset);

  Value constant(const c10::Scalar& value, c10::ScalarType dtype);
  Value index(const Index& index);
  /// The number of the iteration of one loop.
  Value loop_index(std::size_t loop);
  Value condition(std::vector<Condition> conditions);
  Value cast(Value value, c10::ScalarType dtype);
  Value bitcast(Value value, c10::ScalarType dtype);
  Value unary(Op op, Value value);
  Value binary(Op op, Value left, Value right);
  Value compare(Op op, Value left, Value right);
  Value where(Value condition, Value yes, Value no);
  Value fma(Value left, Value right, Value addend);
  Value reduce(Op op, Value value);
  /// The position of the extreme value, see Op::reduce_argmax.
  Value reduce_position(Op op, Value value, Value position);
  Value scan(Op op, Value value);
  /// The graph is run by ATen, which raises, unless `condition` holds everywhere.
  void check(Value condition, std::string message);

  Kernel finish() && { return std::move(kernel_); }

 private:
  Value add(Instruction instruction);

  Kernel kernel_;
  Sizes loops_;
  ValueId next_ = 0;
};

Value operator+(Value left, Value right);
Value operator-(Value left, Value right);
Value operator*(Value left, Value right);
Value operator/(Value left, Value right);
Value operator-(Value value);
Value operator<(Value left, Value right);
Value operator>(Value left, Value right);
Value operator<=(Value left, Value right);
Value operator>=(Value left, Value right);
Value eq(Value left, Value right);
Value ne(Value left, Value right);
/// Of bools.
Value operator&(Value left, Value right);
Value operator|(Value left, Value right);
Value operator!(Value value);

// With a number, which takes the value's dtype.
Value constant_like(Value value, const c10::Scalar& number);
inline Value operator+(Value left, double right) { return left + constant_like(left, right); }
inline Value operator-(Value left, double right) { return left - constant_like(left, right); }
inline Value operator*(Value left, double right) { return left * constant_like(left, right); }
inline Value operator/(Value left, double right) { return left / constant_like(left, right); }
inline Value operator+(double left, Value right) { return constant_like(right, left) + right; }
inline Value operator-(double left, Value right) { return constant_like(right, left) - right; }
inline Value operator*(double left, Value right) { return constant_like(right, left) * right; }
inline Value operator/(double left, Value right) { return constant_like(right, left) / right; }
inline Value operator<(Value left, double right) { return left < constant_like(left, right); }
inline Value operator>(Value left, double right) { return left > constant_like(left, right); }
inline Value operator<=(Value left, double right) { return left <= constant_like(left, right); }
inline Value operator>=(Value left, double right) { return left >= constant_like(left, right); }
inline Value eq(Value left, double right) { return eq(left, constant_like(left, right)); }
inline Value ne(Value left, double right) { return ne(left, constant_like(left, right)); }

Value where(Value condition, Value yes, Value no);
Value where(Value condition, Value yes, double no);
Value where(Value condition, double yes, Value no);
Value apply(Op op, Value value);
Value apply(Op op, Value left, Value right);
Value cast(Value value, c10::ScalarType dtype);

}  // namespace assay::kernels
