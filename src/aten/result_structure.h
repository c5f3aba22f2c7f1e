/// \file The nesting of a graph's results. Compiled graphs return the leaves of a graph's output
/// one after the other (assay/compiler.h); this puts them back into lists, tuples and dicts for
/// whoever shows them to a user.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "aten/value.h"
#include "graph/argument.h"

namespace assay::aten {

/// A list, tuple, slice or dict: what results are nested in.
inline bool is_container(const graph::Argument& argument) {
  return argument.get_if<graph::List>() != nullptr || argument.get_if<graph::Tuple>() != nullptr ||
         argument.get_if<graph::Slice>() != nullptr || argument.get_if<graph::Dict>() != nullptr;
}

class ResultStructure {
 public:
  /// One leaf: a graph that returns a single value.
  ResultStructure() = default;
  /// The structure of a graph's output: the argument of its output node.
  explicit ResultStructure(const graph::Argument& output);

  /// A single value, in no container.
  bool is_leaf() const { return shape_.kind == Value::Kind::leaf; }
  /// A tuple, nested or not: what a C++ function returns.
  bool is_tuple() const { return shape_.kind == Value::Kind::tuple; }
  /// How many leaves there are.
  std::size_t size() const { return size_; }

  /// The results, from their leaves, which are moved from.
  Value fill(std::span<c10::IValue> leaves) const;

 private:
  struct Shape {
    Value::Kind kind = Value::Kind::leaf;
    std::vector<std::string> keys = {};
    std::vector<Shape> items = {};
  };
  Shape shape_of(const graph::Argument& argument);
  static Value fill(const Shape& shape, std::span<c10::IValue> leaves, std::size_t& next);

  Shape shape_;
  std::size_t size_ = 1;
};

/// Visits the leaves of an output in the order in which compiled graphs return them.
template <typename Visit>
void for_each_result(const graph::Argument& output, const Visit& visit) {
  if (!is_container(output)) {
    visit(output);
    return;
  }
  for (const graph::Argument& item : output.items()) for_each_result(item, visit);
}

}  // namespace assay::aten
