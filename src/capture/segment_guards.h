/// \file The guards of a recorded segment, compiled from its sources (source.h): a flat list of
/// steps, each of which fetches one object from its parent and checks it. Where CPython's dict
/// version tags prove that a dict has not changed, the object is not even looked up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/activation.h"
#include "capture/size_numbers.h"
#include "capture/source.h"
#include "guards/global_state.h"

namespace assay::capture {

/// An attribute that was looked up on a type, along its MRO: it must still be found, the same one.
struct TypeLookup {
  Ref type;
  Ref name;
  Ref found;             ///< Null if there was none.
  unsigned version = 0;  ///< The type's version tag when this was last seen to hold.
};

/// issubclass(type, of) was asked, by isinstance too: the answer must still be the same. Asked
/// again only if the type has changed, or if classes were registered with an abstract base class.
struct SubclassCheck {
  Ref type;
  Ref of;
  bool expected = false;
  bool is_abstract = false;  ///< `of` answers by its registry.
  unsigned version = 0;      ///< The type's version tag when this was last seen to hold.
  Ref registrations = {};    ///< abc.get_cache_token() then.

  bool holds();
};

/// The objects that the guards have fetched, one per step. Borrowed from the frame and what it
/// reaches, or kept alive here.
struct GuardValues {
  // There are many of them, and calls are frequent: the memory is used again.
  GuardValues() { objects.swap(spare()); }
  ~GuardValues() {
    objects.clear();
    objects.swap(spare());
  }
  GuardValues(const GuardValues&) = delete;
  GuardValues& operator=(const GuardValues&) = delete;

  std::vector<PyObject*> objects;
  std::vector<Ref> kept;

 private:
  static std::vector<PyObject*>& spare() {
    static thread_local std::vector<PyObject*> memory;
    return memory;
  }
};

/// The first guard that fails.
struct GuardFailure {
  /// One sentence: which expression, its value now, and what was expected. Empty if all hold.
  std::string text;
  bool is_tensor = false;  ///< A property of a tensor is another one.
};

class GuardSnapshot;

class SegmentGuards {
 public:
  /// `needed`: sources whose objects a replay uses, by id. `distinct`: groups of sources that must
  /// be different objects.
  SegmentGuards(const SourceTree& tree, const std::vector<bool>& needed,
                const std::vector<std::vector<const Source*>>& distinct,
                std::vector<TypeLookup> lookups, std::vector<SubclassCheck> subclass_checks,
                const guards::GlobalState& state, PyObject* globals);
  ~SegmentGuards();

  /// They hold only where no exception is being handled.
  void require_no_exception() { no_exception_ = true; }
  /// Whether everything holds in this frame. Fills `values` as far as it gets.
  bool hold(const Activation& activation, const guards::GlobalState& state,
            GuardValues& values) const;
  GuardFailure failure(const Activation& activation, const guards::GlobalState& state) const;
  /// What a guard may be about for it not to count.
  enum class Besides { nothing, sizes, sizes_and_numbers };
  /// Whether all others hold.
  bool hold_but_for(Besides besides, const Activation& activation,
                    const guards::GlobalState& state) const;
  /// Adds the dimensions in which tensors have other sizes, and other numbers, to `open`.
  void add_others(const Activation& activation, OpenSources& open) const;
  /// The guards as text, one per line, for logs and `explain`.
  std::vector<std::string> describe() const;

  /// The step that fetches a source, or -1.
  int step_of(const Source& source) const;

 private:
  friend class GuardSnapshot;
  struct Step {
    Access access = Access::constant;
    int parent = -1;
    int same_as = -1;
    Py_ssize_t index = 0;
    PyObject* key = nullptr;  // owned by `source`
    bool has_checks = false;
    Checks checks;
    std::string expression;
    Ref key_owner;
    mutable std::uint64_t version = 0;  // of the dict in which `cached` was found; 0: none
    mutable PyObject* cached = nullptr;
  };
  static PyObject* fetch(const Step& step, const Activation& activation, GuardValues& values);
  static bool check(const Step& step, PyObject* object, const GuardValues& values);
  static std::string why(const Step& step, PyObject* object, const GuardValues& values,
                         const std::vector<Step>& steps);
  bool lookups_hold() const;
  bool hold_one_by_one(const Activation& activation, GuardValues& values) const;
  bool all_distinct(const GuardValues& values) const;
  /// Whether the frame's state is right, apart from what the steps fetch.
  bool surroundings_hold(const Activation& activation, const guards::GlobalState& state) const;
  /// The first step whose object fails, or nothing. Fills `values` up to there.
  std::optional<std::size_t> first_misfit(const Activation& activation, GuardValues& values,
                                          Besides besides) const;
  static bool is_besides(Besides besides, const Step& step, PyObject* object);
  std::vector<Step> steps_;
  std::vector<int> step_of_;                // by source id
  std::vector<std::vector<int>> distinct_;  // groups of steps
  mutable std::vector<TypeLookup> lookups_;
  mutable std::vector<SubclassCheck> subclass_checks_;
  mutable std::vector<PyObject*> last_distinct_;  // the objects for which all_distinct held
  guards::GlobalState state_;
  Ref globals_;
  bool no_exception_ = false;
  /// What held last, from which it is seen cheaply that it still does.
  mutable std::shared_ptr<const GuardSnapshot> snapshot_;
  mutable int attempts_ = 0;  // to make one, since one held
};

}  // namespace assay::capture
