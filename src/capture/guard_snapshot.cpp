#include "capture/guard_snapshot.h"

#include <algorithm>
#include <new>

#include "capture/torch_types.h"

namespace assay::capture {

namespace {

std::uint64_t version_of(PyObject* dict) {
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}

// Whether it can be told later that an object at the same address is still this one.
bool can_be_recognized(PyObject* object) {
  return object != nullptr && !is_tensor(object) && PyType_SUPPORTS_WEAKREFS(Py_TYPE(object));
}

}  // namespace

GuardSnapshot::GuardSnapshot(const SegmentGuards& guards, const GuardValues& values)
    : objects_(values.objects), stable_(values.objects.size()) {
  const auto count = static_cast<int>(guards.steps_.size());
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Step& step = guards.steps_[at];
    PyObject* object = values.objects[at];
    stable_[at] = is_stable(step, object);
    if (!stable_[at]) {
      objects_[at] = nullptr;
      changing_.push_back(i);
      continue;
    }
    PyObject* parent =
        step.parent < 0 ? nullptr : values.objects[static_cast<std::size_t>(step.parent)];
    prove_place(step, i, parent, object);
    if (step.has_checks && object != nullptr) prove_checks(step, i, object);
  }
  for (const TypeLookup& lookup : guards.lookups_) {
    auto* type = reinterpret_cast<PyTypeObject*>(lookup.type.get());
    const auto is_it = [&](const Type& known) { return known.type == type; };
    if (std::ranges::none_of(types_, is_it)) types_.push_back({type, type->tp_version_tag});
  }
  for (const std::vector<int>& steps : guards.distinct_) {
    Group& group = groups_.emplace_back();
    for (const int step : steps) {
      const auto at = static_cast<std::size_t>(step);
      if (stable_[at]) {
        group.stable.push_back(objects_[at]);
      } else {
        group.changing.push_back(step);
      }
    }
    std::ranges::sort(group.stable);
    if (group.changing.empty()) groups_.pop_back();
  }
  versions_known_ = {};
}

bool GuardSnapshot::is_stable(const Step& step, PyObject* object) const {
  if (step.same_as >= 0 && !stable_[static_cast<std::size_t>(step.same_as)]) return false;
  switch (step.access) {
    case Access::slot:
    case Access::function:
      return can_be_recognized(object);
    case Access::constant:
      return true;
    case Access::member:
    case Access::array:
    case Access::answer:
      return false;
    case Access::dict:
    case Access::closure:
    case Access::contents:
    case Access::item:
    case Access::element:
    case Access::receiver:
    case Access::callee:
    case Access::referent:
      break;
  }
  if (step.parent < 0 || !stable_[static_cast<std::size_t>(step.parent)]) return false;
  PyObject* parent = objects_[static_cast<std::size_t>(step.parent)];
  if (parent == nullptr) return false;
  if (step.access == Access::item) return PyDict_Check(parent) != 0;
  if (step.access == Access::dict) return _PyObject_GetDictPtr(parent) != nullptr;
  if (step.access == Access::element) {
    return PyTuple_Check(parent) || (PyList_Check(parent) && can_be_recognized(object));
  }
  if (step.access == Access::contents || step.access == Access::referent) {
    return can_be_recognized(object);
  }
  return object != nullptr;
}

PyObject* GuardSnapshot::recognize(PyObject* object) {
  weak_.push_back(Ref::steal(PyWeakref_NewRef(object, nullptr)));
  if (!weak_.back()) throw std::bad_alloc();
  return weak_.back().get();
}

void GuardSnapshot::prove_version(PyObject* dict) {
  if (!versions_known_.insert(dict).second) return;
  if (proofs_.empty() || proofs_.back().kind != Kind::version) {
    proofs_.push_back({Kind::version, 0, nullptr, nullptr, versions_.size()});
  }
  ++proofs_.back().step;
  versions_.push_back({dict, version_of(dict)});
}

void GuardSnapshot::prove_place(const Step& step, int index, PyObject* parent, PyObject* object) {
  switch (step.access) {
    case Access::slot:
      roots_.push_back({step.index, object, recognize(object)});
      return;
    case Access::function:
      roots_.push_back({-1, object, recognize(object)});
      return;
    case Access::dict:
      proofs_.push_back({Kind::dict, index, parent, object,
                         reinterpret_cast<std::uint64_t>(_PyObject_GetDictPtr(parent))});
      return;
    case Access::item:
      prove_version(parent);
      return;
    case Access::contents:
      proofs_.push_back({Kind::contents, index, parent, object, 0});
      proofs_.push_back({Kind::alive, index, recognize(object), object, 0});
      return;
    case Access::element:
      if (PyTuple_Check(parent)) return;
      proofs_.push_back(
          {Kind::element, index, parent, object, static_cast<std::uint64_t>(step.index)});
      proofs_.push_back({Kind::alive, index, recognize(object), object, 0});
      return;
    case Access::referent:
      proofs_.push_back({Kind::referent, index, parent, object, 0});
      proofs_.push_back({Kind::alive, index, recognize(object), object, 0});
      return;
    default:
      return;  // follows from the parent: nobody can change it
  }
}

void GuardSnapshot::prove_checks(const Step& step, int index, PyObject* object) {
  const Checks& checks = step.checks;
  const bool is_dict = PyDict_Check(object) != 0;
  if (checks.tensor) {
    tensors_.push_back({&tensor_of(object), &*checks.tensor});
    proofs_.push_back({Kind::type, index, object, reinterpret_cast<PyObject*>(Py_TYPE(object)), 0});
    return;
  }
  if (checks.type && (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) {
    proofs_.push_back({Kind::type, index, object, checks.type.get(), 0});
  }
  const bool has_contents = checks.length >= 0 || checks.keys || checks.order ||
                            (checks.value && PyAnySet_Check(object) != 0);
  // An OrderedDict keeps its order elsewhere.
  if (has_contents && is_dict && !(checks.keys && PyODict_Check(object))) {
    prove_version(object);
  } else if ((has_contents && !PyTuple_Check(object)) || checks.function) {
    proofs_.push_back({Kind::step, index, object, object, 0});
  }
}

bool GuardSnapshot::fits(const Activation& activation) const {
  return std::ranges::all_of(roots_, [&](const Root& root) {
    if (PyWeakref_GET_OBJECT(root.weak) != root.object) return false;
    if (root.slot < 0) return reinterpret_cast<PyObject*>(activation.frame->f_func) == root.object;
    return activation.locals + root.slot < activation.top &&
           activation.locals[root.slot] == root.object;
  });
}

bool GuardSnapshot::proofs_hold(const SegmentGuards& guards, const GuardValues& values) const {
  for (const Proof& proof : proofs_) {
    switch (proof.kind) {
      case Kind::version: {
        const Version* const first = versions_.data() + proof.detail;
        for (const Version* known = first; known != first + proof.step; ++known) {
          if (version_of(known->dict) != known->version) return false;
        }
        break;
      }
      case Kind::dict:
        if (*reinterpret_cast<PyObject**>(proof.detail) != proof.expected) return false;
        break;
      case Kind::type:
        if (reinterpret_cast<PyObject*>(Py_TYPE(proof.subject)) != proof.expected) return false;
        break;
      case Kind::contents:
        if (PyCell_GET(proof.subject) != proof.expected) return false;
        break;
      case Kind::element:
        if (static_cast<Py_ssize_t>(proof.detail) >= PyList_GET_SIZE(proof.subject) ||
            PyList_GET_ITEM(proof.subject, proof.detail) != proof.expected) {
          return false;
        }
        break;
      case Kind::alive:
      case Kind::referent:
        if (PyWeakref_GET_OBJECT(proof.subject) != proof.expected) return false;
        break;
      case Kind::step: {
        const Step& step = guards.steps_[static_cast<std::size_t>(proof.step)];
        if (!SegmentGuards::check(step, proof.expected, values)) return false;
        break;
      }
    }
  }
  return true;
}

bool GuardSnapshot::groups_hold(const GuardValues& values) const {
  for (const Group& group : groups_) {
    for (std::size_t i = 0; i < group.changing.size(); ++i) {
      PyObject* object = values.objects[static_cast<std::size_t>(group.changing[i])];
      if (std::ranges::binary_search(group.stable, object)) return false;
      for (std::size_t j = 0; j < i; ++j) {
        if (values.objects[static_cast<std::size_t>(group.changing[j])] == object) return false;
      }
    }
  }
  return true;
}

bool GuardSnapshot::holds(const SegmentGuards& guards, const Activation& activation,
                          GuardValues& values) const {
  if (!fits(activation)) return false;
  values.objects.assign(objects_.begin(), objects_.end());
  if (!proofs_hold(guards, values)) return false;
  if (!guards::all_hold(tensors_)) return false;
  for (const int index : changing_) {
    const auto at = static_cast<std::size_t>(index);
    const Step& step = guards.steps_[at];
    PyObject* object = SegmentGuards::fetch(step, activation, values);
    values.objects[at] = object;
    if (step.has_checks ? !SegmentGuards::check(step, object, values)
                        : object == nullptr && !step.checks.may_be_unset) {
      return false;
    }
  }
  for (const Type& type : types_) {
    if (type.version == 0 || type.type->tp_version_tag != type.version) return false;
  }
  return groups_hold(values) &&
         std::ranges::all_of(guards.subclass_checks_,
                             [](SubclassCheck& check) { return check.holds(); });
}

}  // namespace assay::capture
