/// \file The arguments of a node: a tree of nodes, numbers, sizes, strings, dtypes, containers and
/// None.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "graph/size_expr.h"

namespace assay::graph {

class Argument;
class Node;

struct None {
  bool operator==(const None&) const = default;
};
struct Ellipsis {
  bool operator==(const Ellipsis&) const = default;
};
/// A Python object known only by its dotted name, e.g. `torch.per_tensor_affine`.
struct QualifiedName {
  std::string name;
  bool operator==(const QualifiedName&) const = default;
};
struct List {
  std::vector<Argument> items;
};
struct Tuple {
  std::vector<Argument> items;
};
/// `slice(start, stop, step)`; always three items.
struct Slice {
  std::vector<Argument> items;
};
/// A dict with string keys, in the order written.
struct Dict {
  std::vector<std::string> keys;
  std::vector<Argument> items;
};

template <typename T, typename Variant>
inline constexpr bool is_alternative = false;
template <typename T, typename... Ts>
inline constexpr bool is_alternative<T, std::variant<Ts...>> = (std::is_same_v<T, Ts> || ...);

/// One argument: a value type, compared structurally (nodes by identity, NaN equal to NaN).
class Argument {
 public:
  using Value = std::variant<None, bool, std::int64_t, double, std::complex<double>, std::string,
                             c10::ScalarType, c10::Device, c10::Layout, c10::MemoryFormat, Ellipsis,
                             QualifiedName, Node*, List, Tuple, Slice, Dict, SizeExpr>;

  Argument() : value_(None{}) {}
  // Literals convert to arguments on purpose.
  template <typename T, std::enable_if_t<is_alternative<std::decay_t<T>, Value> &&
                                             !std::is_same_v<std::decay_t<T>, SizeExpr>,
                                         int> = 0>
  Argument(T&& value)  // NOLINT
      : value_(std::in_place_type<std::decay_t<T>>, std::forward<T>(value)) {}
  /// An integer that mentions size symbols; without any it is the number.
  template <typename T, std::enable_if_t<std::is_same_v<std::decay_t<T>, SizeExpr>, char> = 0>
  Argument(T&& size) {  // NOLINT
    if (const auto constant = size.constant()) {
      value_ = *constant;
    } else {
      value_ = std::forward<T>(size);
    }
  }
  Argument(int value) : value_(static_cast<std::int64_t>(value)) {}  // NOLINT
  Argument(const char* text) : value_(std::string(text)) {}          // NOLINT

  const Value& value() const { return value_; }
  template <typename T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  bool is_none() const { return std::holds_alternative<None>(value_); }
  /// The node this argument is, or nullptr.
  Node* node() const;
  /// The children of a container (list, tuple, slice, dict values); empty for anything else.
  const std::vector<Argument>& items() const;

  /// Calls `visit` for every node mentioned in the tree, in order, once per mention.
  template <typename Visitor>
  void for_each_node(Visitor&& visit) const {
    if (Node* found = node()) {
      visit(*found);
      return;
    }
    for (const Argument& item : items()) item.for_each_node(visit);
  }

  /// Calls `visit` for every size expression in the tree.
  template <typename Visitor>
  void for_each_size(Visitor&& visit) const {
    if (const auto* size = get_if<SizeExpr>()) visit(*size);
    for (const Argument& item : items()) item.for_each_size(visit);
  }

  /// A copy in which every node is replaced by what `replace` gives for it.
  Argument map_nodes(const std::function<Argument(Node&)>& replace) const;

 private:
  std::vector<Argument>* mutable_items();

  Value value_;
};

struct NamedArgument {
  std::string name;
  Argument value;
};

/// Structural equality where two nodes are equal if `same_node` says so.
bool equal(const Argument& left, const Argument& right,
           const std::function<bool(const Node&, const Node&)>& same_node);

}  // namespace assay::graph
