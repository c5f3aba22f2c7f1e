/// \file What a segment's guards found the last time they held, and how to tell cheaply that it is
/// still so. Objects that are reached from the same ones as then, through dicts whose version tags
/// have not changed, are the same ones: they are neither looked up nor checked again. Only what can
/// change without a trace in a dict is: tensors, lists, cells, an object's class. Used by
/// SegmentGuards.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "capture/activation.h"
#include "capture/cpython_311.h"
#include "capture/segment_guards.h"

namespace assay::capture {

class GuardSnapshot {
 public:
  using Step = SegmentGuards::Step;

  /// Of guards that have just held, with these objects.
  GuardSnapshot(const SegmentGuards& guards, const GuardValues& values);

  /// Whether the guards hold as they did. Then `values` are filled. Otherwise nothing is known.
  bool holds(const SegmentGuards& guards, const Activation& activation, GuardValues& values) const;
  /// Whether the objects that the frame brings are those of the snapshot: it can be used.
  bool fits(const Activation& activation) const;

 private:
  enum class Kind : std::uint8_t { dict, version, contents, element, referent, alive, type, step };
  /// In the order of the steps: what one looks into has been proven to be alive by those before.
  struct Proof {
    Kind kind;
    int step;  // for `step`: it is checked as the guards do; for `version`: how many there are
    PyObject* subject;  // a dict, cell, list, weak reference or object
    PyObject* expected;
    std::uint64_t detail;  // a dict's version, an index, the place where an object keeps its dict
  };
  /// Most proofs are of dicts. Those that follow one another are kept closely together.
  struct Version {
    PyObject* dict;
    std::uint64_t version;
  };
  struct Root {
    Py_ssize_t slot;  // -1: the frame's function
    PyObject* object;
    PyObject* weak;
  };
  struct Type {
    PyTypeObject* type;
    unsigned version;
  };
  /// Objects that must differ: those of stable steps, sorted, and those of changing ones.
  struct Group {
    std::vector<PyObject*> stable;
    std::vector<int> changing;
  };

  bool is_stable(const Step& step, PyObject* object) const;
  void prove_place(const Step& step, int index, PyObject* parent, PyObject* object);
  void prove_checks(const Step& step, int index, PyObject* object);
  /// A weak reference: an object that is found at the same address later may be another one.
  PyObject* recognize(PyObject* object);
  void prove_version(PyObject* dict);
  bool proofs_hold(const SegmentGuards& guards, const GuardValues& values) const;
  bool groups_hold(const GuardValues& values) const;

  std::vector<PyObject*> objects_;  // of all steps; null where they change
  std::vector<bool> stable_;        // by step
  std::vector<Ref> weak_;
  std::vector<Root> roots_;
  std::vector<Proof> proofs_;
  std::vector<Version> versions_;
  std::vector<guards::GuardedTensor> tensors_;  // of objects that are proven to be alive
  std::vector<int> changing_;                   // steps that are fetched and checked every time
  std::vector<Type> types_;
  std::vector<Group> groups_;
  std::unordered_set<PyObject*> versions_known_;  // while it is made
};

}  // namespace assay::capture
