/// \file A Python value while a graph runs: a tensor, a number, a dtype, a list, a slice, ...
///
/// Operators speak `c10::IValue`, which cannot tell a dtype from an integer nor hold a slice; the
/// values between operators can.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay::graph {
class Graph;
}

namespace assay::aten {

struct Value {
  enum class Kind : std::uint8_t {
    leaf,           // `leaf` holds a tensor, number, bool, string, device, None, or operator result
    dtype,          // `leaf` holds the c10::ScalarType as an integer
    layout,         // likewise
    memory_format,  // likewise
    ellipsis,
    list,      // `items`
    tuple,     // `items`
    slice,     // `items`: start, stop, step
    dict,      // `keys` and `items`
    name,      // `leaf` holds a dotted Python name
    subgraph,  // `graph`
  };

  Value() = default;
  Value(c10::IValue value) : leaf(std::move(value)) {}  // NOLINT: operators' results are values
  Value(Kind value_kind, c10::IValue value) : kind(value_kind), leaf(std::move(value)) {}
  static Value sequence(Kind kind, std::vector<Value> items);

  bool is_leaf() const { return kind == Kind::leaf; }
  bool is_tensor() const { return is_leaf() && leaf.isTensor(); }
  bool is_none() const { return is_leaf() && leaf.isNone(); }
  bool is_bool() const { return is_leaf() && leaf.isBool(); }
  bool is_int() const { return is_leaf() && leaf.isInt(); }
  bool is_float() const { return is_leaf() && leaf.isDouble(); }
  bool is_string() const { return is_leaf() && leaf.isString(); }
  /// An int, float or complex number; a bool too, as in Python.
  bool is_number() const { return is_leaf() && leaf.isScalar(); }
  bool is_sequence() const { return kind == Kind::list || kind == Kind::tuple; }

  Kind kind = Kind::leaf;
  c10::IValue leaf;
  std::vector<Value> items;
  std::vector<std::string> keys;
  const graph::Graph* graph = nullptr;
};

/// The items of a list or tuple, whether held as values or as an operator's list result. Throws
/// `UserError` if the value is neither.
std::vector<Value> unpack(const Value& value);

/// The value as a plain IValue (lists and tuples become lists of any type), for results handed out.
c10::IValue to_ivalue(const Value& value);

/// A value as it travels between compiled graphs (assay/compiler.h): plain where an IValue can hold
/// it, else in a capsule. `unpack_value` gives the same value back.
c10::IValue pack_value(Value value);
Value unpack_value(c10::IValue packed);
std::vector<Value> unpack_values(std::span<const c10::IValue> packed);

/// Python's name for the value's type, for messages: `Tensor`, `int`, `list of int`, ...
std::string type_name(const Value& value);

}  // namespace assay::aten
