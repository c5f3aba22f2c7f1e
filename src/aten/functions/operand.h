/// \file A short way to call operators from C++: `run("aten::dropout", {x, 0.5, true})`.
/// Used by the implementations in this folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aten/match.h"
#include "aten/value.h"

namespace assay::aten {

/// Anything that may be written where an operator's argument is expected.
struct Operand {
  Operand(Value made) : value(std::move(made)) {}                        // NOLINT
  Operand(at::Tensor tensor) : value(c10::IValue(std::move(tensor))) {}  // NOLINT
  Operand(bool truth) : value(c10::IValue(truth)) {}                     // NOLINT
  Operand(int number) : value(c10::IValue(std::int64_t{number})) {}      // NOLINT
  Operand(std::int64_t number) : value(c10::IValue(number)) {}           // NOLINT
  Operand(double number) : value(c10::IValue(number)) {}                 // NOLINT
  Operand(const char* text) : value(c10::IValue(std::string(text))) {}   // NOLINT
  Operand(c10::Device device) : value(c10::IValue(device)) {}            // NOLINT
  Operand(std::nullopt_t) {}                                             // NOLINT
  Operand(at::ScalarType dtype)                                          // NOLINT
      : value(Value::Kind::dtype, static_cast<std::int64_t>(dtype)) {}
  Operand(at::MemoryFormat format)  // NOLINT
      : value(Value::Kind::memory_format, static_cast<std::int64_t>(format)) {}
  Operand(const std::vector<std::int64_t>& numbers);                                // NOLINT
  Operand(at::IntArrayRef numbers) : Operand(numbers.vec()) {}                      // NOLINT
  Operand(const std::vector<at::Tensor>& tensors) : value(c10::IValue(tensors)) {}  // NOLINT

  Value value;
};

struct NamedOperand {
  const char* name;
  Operand operand;
};

/// Calls an operator by its qualified name, choosing the overload by the arguments.
Value run(const std::string& op, std::initializer_list<Operand> positional,
          std::initializer_list<NamedOperand> keywords = {});
/// The same where the result is one tensor.
at::Tensor run_tensor(const std::string& op, std::initializer_list<Operand> positional,
                      std::initializer_list<NamedOperand> keywords = {});

Value tuple_of(std::vector<Value> items);
Value list_of(std::vector<Value> items);
/// What `x.shape` and `x.stride()` give.
Value size_tuple(at::IntArrayRef sizes);

/// True for a list or tuple, whether held as values or as an operator's list result.
bool holds_sequence(const Value& value);
/// One int as it is `count` times, a list of ints as it is.
std::vector<std::int64_t> repeat_to(const Value& value, std::size_t count);
/// The ints of a list or tuple. Throws `UserError` if there is anything else in it.
std::vector<std::int64_t> integers_of(const Value& value);
std::vector<at::Tensor> tensors_of(const Value& value);
/// The tensor, or `UserError`.
at::Tensor tensor_of(const Value& value);
std::optional<at::Tensor> optional_tensor(const Value& value);
Operand optional_operand(const std::optional<at::Tensor>& tensor);
at::Scalar scalar_of(const Value& value);
at::ScalarType dtype_of(const Value& value);
/// A device given as one, as text or as an index.
c10::Device device_of(const Value& value);
/// A number as a 0-dim tensor that does not take part in type promotion; a tensor as it is.
at::Tensor tensor_or_wrapped(const Value& value);
/// Python's `bool(value)`.
bool truth_of(const Value& value);

}  // namespace assay::aten
