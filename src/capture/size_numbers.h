/// \file Numbers that follow from sizes, or that come from outside, while a segment is recorded
/// that is to fit other sizes of its tensors and other numbers, too. Each is an int object of its
/// own, known by its address wherever the program puts it, and a node of the graph. What the
/// program does with such numbers other than to compute with them and to pass them on becomes a
/// condition: it must come out the same for other sizes. Used by the recorder.
#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/ref.h"
#include "graph/graph.h"

namespace assay::capture {

/// What may be another one in later calls, by the expression of its source.
struct OpenSources {
  std::map<std::string, std::uint64_t> sizes;  ///< Dimensions of tensors, a bit for each.
  std::set<std::string> numbers;               ///< Ints and floats.
  bool empty() const { return sizes.empty() && numbers.empty(); }
};

/// Whether tensors may have been marked to have other sizes later (mark_dynamic).
bool has_marked_tensors();
void note_marked_tensors();

class SizeNumbers {
 public:
  struct Number {
    graph::Node* node = nullptr;
    Ref object;              ///< Null for truths.
    std::int64_t value = 0;  ///< In the call that is recorded.
  };
  /// A number or truth that must be the same for other sizes.
  struct Condition {
    graph::Node* node = nullptr;
    std::int64_t value = 0;
  };

  bool empty() const { return numbers_.empty(); }
  /// The node of an object that is such a number; null for any other.
  graph::Node* find(PyObject* object) const;
  /// A new int object for what the node computes: a new reference, or null with an exception set.
  PyObject* make(graph::Node& node, std::int64_t value);
  /// The same for an int or float from outside, whose node is a placeholder.
  PyObject* make_input(graph::Node& node, PyObject* value);
  /// A truth that the program knows now: it must be the same for other sizes.
  void make_truth(graph::Node& node, bool value);
  /// From now on the node's value is known to be this one.
  void expect(graph::Node& node, std::int64_t value);

  /// The node is erased: nothing uses the number.
  void forget(const graph::Node& node);

  const std::vector<Number>& numbers() const { return numbers_; }
  const std::vector<Condition>& conditions() const { return conditions_; }

  /// For rolling back: how much there is, and forgetting what came later.
  struct Mark {
    std::size_t numbers = 0;
    std::size_t conditions = 0;
  };
  Mark mark() const { return {numbers_.size(), conditions_.size()}; }
  void truncate(const Mark& mark);
  void clear() { truncate({}); }

 private:
  std::vector<Number> numbers_;
  std::vector<Condition> conditions_;
  std::unordered_map<PyObject*, graph::Node*> by_object_;
};

}  // namespace assay::capture
