#include "graph/argument.h"

#include <cmath>
#include <type_traits>

namespace assay::graph {

namespace {

template <typename T>
constexpr bool is_container = std::is_same_v<T, List> || std::is_same_v<T, Tuple> ||
                              std::is_same_v<T, Slice> || std::is_same_v<T, Dict>;

// Bitwise, so that -0.0 differs from 0.0 and NaN equals NaN: a graph that prints the same is equal.
bool same_float(double left, double right) {
  if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && std::isnan(right);
  return left == right && std::signbit(left) == std::signbit(right);
}

}  // namespace

Node* Argument::node() const {
  Node* const* found = std::get_if<Node*>(&value_);
  return found == nullptr ? nullptr : *found;
}

const std::vector<Argument>& Argument::items() const {
  static const std::vector<Argument> none;
  return std::visit(
      [](const auto& value) -> const std::vector<Argument>& {
        if constexpr (is_container<std::decay_t<decltype(value)>>) {
          return value.items;
        } else {
          return none;
        }
      },
      value_);
}

std::vector<Argument>* Argument::mutable_items() {
  return std::visit(
      [](auto& value) -> std::vector<Argument>* {
        if constexpr (is_container<std::decay_t<decltype(value)>>) {
          return &value.items;
        } else {
          return nullptr;
        }
      },
      value_);
}

Argument Argument::map_nodes(const std::function<Argument(Node&)>& replace) const {
  if (Node* found = node()) return replace(*found);
  Argument copy = *this;
  if (auto* children = copy.mutable_items()) {
    for (Argument& child : *children) child = child.map_nodes(replace);
  }
  return copy;
}

bool equal(const Argument& left, const Argument& right,
           const std::function<bool(const Node&, const Node&)>& same_node) {
  if (left.value().index() != right.value().index()) return false;
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        const T& other = std::get<T>(right.value());
        if constexpr (std::is_same_v<T, Node*>) {
          return same_node(*value, *other);
        } else if constexpr (is_container<T>) {
          if constexpr (std::is_same_v<T, Dict>) {
            if (value.keys != other.keys) return false;
          }
          if (value.items.size() != other.items.size()) return false;
          for (std::size_t i = 0; i < value.items.size(); ++i) {
            if (!equal(value.items[i], other.items[i], same_node)) return false;
          }
          return true;
        } else if constexpr (std::is_same_v<T, double>) {
          return same_float(value, other);
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          return same_float(value.real(), other.real()) && same_float(value.imag(), other.imag());
        } else {
          return value == other;
        }
      },
      left.value());
}

}  // namespace assay::graph
