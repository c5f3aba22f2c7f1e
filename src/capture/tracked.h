/// \file What the recorder knows about the objects a program handles while a segment is recorded.
#pragma once

#include <Python.h>

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "capture/ref.h"
#include "capture/source.h"
#include "graph/graph.h"

namespace assay::capture {

struct Tracked {
  enum class Kind : std::uint8_t {
    source,    ///< Existed before; reached by `source`.
    constant,  ///< Existed before, and guarded to be this very object; or part of the code.
    node,      ///< A tensor that the graph computes, or an array of NumPy.
    local,     ///< Made in this segment: a container, a function, an instance, ...
  };
  Kind kind = Kind::local;
  Source* source = nullptr;     ///< For source and constant.
  graph::Node* node = nullptr;  ///< The graph's value; for a source tensor its placeholder.
  bool is_touched = false;      ///< The checks of its source are there.
  bool is_known = false;        ///< All its contents are tracked.
  bool is_mutated = false;      ///< Changed in this segment.
  bool is_fresh = false;        ///< A tuple that only the frame has.
  bool has_known_dict = false;  ///< Its __dict__ is tracked, by this way.
  bool has_open_size = false;   ///< A tensor of the graph whose size follows from values.
  bool is_fixed = false;        ///< An array whose values are the same in every run of the graph.
  /// Of a tensor, one bit per dimension: what its size is in later calls is not guarded.
  std::uint64_t varying = 0;
  Py_ssize_t appended = 0;  ///< Items added at the end of a list that is not known.
  Ref known_keys;           ///< Of a dict that is not known as a whole: a set.
  Ref first_keys;           ///< Of such a dict that was changed: its keys before, a list.
  std::uint64_t order = 0;  ///< When it was first seen.
  Ref object;               ///< Keeps it alive; null for generators and the graph's tensors.
  Ref weak;                 ///< For those: tells whether the address is still theirs.
};

/// The objects by address.
class TrackedObjects {
 public:
  Tracked* find(PyObject* object);
  Tracked& add(PyObject* object, Tracked::Kind kind);
  /// Forgets what was first seen after `order`.
  void truncate(std::uint64_t order);
  /// Forgets the tensors that calls computed which are taken out of the graph.
  void forget(const std::unordered_set<const graph::Node*>& nodes);
  std::uint64_t order() const { return next_; }
  /// Lets go of what the recorder alone keeps alive, among what was first seen after `order`.
  void sweep(std::uint64_t order);
  void clear();
  auto begin() { return objects_.begin(); }
  auto end() { return objects_.end(); }

 private:
  std::unordered_map<PyObject*, Tracked> objects_;
  std::vector<PyObject*> recent_;  // in the order of their numbers; may hold forgotten ones
  std::uint64_t next_ = 0;
};

}  // namespace assay::capture
