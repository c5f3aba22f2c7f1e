// Objects as keys of dicts and items of sets: which of them are the same one is guarded.
#include <map>
#include <set>

#include "capture/constant_objects.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

constexpr Py_ssize_t kMostKeys = 1000;  // larger containers are not looked at as a whole

// Null for what is compared by value.
PyTypeObject* type_of_key(const Source& source) {
  if (source.access == Access::constant) return Py_TYPE(source.key.get());
  if (source.checks.identical) return Py_TYPE(source.checks.identical.get());
  if (source.checks.value) return nullptr;
  return reinterpret_cast<PyTypeObject*>(source.checks.type.get());
}

}  // namespace

KeyScope::KeyScope(Recorder& recorder, PyObject* key) {
  if (is_plain_tensor(key)) suspended_.emplace(recorder);
}

bool Recorder::is_known_key(PyObject* key) {
  if (is_scalar(key)) return true;
  if (PyTuple_CheckExact(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
      if (!is_known_key(PyTuple_GET_ITEM(key, i))) return false;
    }
    return true;
  }
  touch(key);
  const Tracked* tracked = tracked_.find(key);
  return tracked != nullptr && tracked->kind == Tracked::Kind::constant;
}

bool Recorder::is_compared_by_identity(PyObject* object) {
  if (is_plain_tensor(object)) return true;
  // Both are asked: a class may get such a method later.
  const bool has_hash = is_python_method(object, "__hash__");
  const bool has_eq = is_python_method(object, "__eq__");
  const PyTypeObject* type = Py_TYPE(object);
  return !has_hash && !has_eq && type->tp_hash == PyBaseObject_Type.tp_hash &&
         type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

bool Recorder::use_as_key(PyObject* key) {
  use_numbers(key);
  if (is_scalar(key)) return true;
  if (PyTuple_Check(key)) return know_contents(key) && use_items_as_keys(key);
  if (!touch(key) || is_computed_array(key)) return false;
  const Source* source = tracked_.find(key)->source;
  if (source != nullptr && type_of_key(*source) != nullptr) keys_.insert(source);
  return true;
}

bool Recorder::use_items_as_keys(PyObject* container) {
  if (is_sequence(container)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i) {
      if (!use_as_key(PySequence_Fast_GET_ITEM(container, i))) return false;
    }
  } else if (PyDict_Check(container)) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    while (PyDict_Next(container, &position, &key, nullptr) != 0) {
      if (!use_as_key(key)) return false;
    }
  } else if (PyAnySet_Check(container)) {
    PyObject* item = nullptr;
    Py_ssize_t position = 0;
    Py_hash_t hash = 0;
    while (_PySet_NextEntry(container, &position, &item, &hash) != 0) {
      if (!use_as_key(item)) return false;
    }
  }
  return true;
}

bool Recorder::prepare_key(PyObject* container, PyObject* key) {
  use_numbers(key);
  if (is_scalar(key)) return true;
  const Tracked* tracked = tracked_.find(container);
  if (tracked == nullptr) return false;
  if (is_known_key(key)) return use_as_key(key);
  if (tracked->source != nullptr) {
    // It has keys from before, which this one may be.
    const Py_ssize_t size = PyObject_Size(container);
    if (size < 0 || size > kMostKeys || !is_compared_by_identity(key) ||
        !know_contents(container) || !use_items_as_keys(container)) {
      return false;
    }
  }
  return use_as_key(key);
}

void Recorder::distinct_keys(std::vector<std::vector<const Source*>>& groups) const {
  std::map<PyTypeObject*, std::vector<const Source*>> by_type;
  std::set<PyTypeObject*> may_change;  // types with a key that is not guarded to be this very one
  for (const Source* source : keys_) {
    PyTypeObject* type = type_of_key(*source);
    by_type[type].push_back(source);
    if (source->access != Access::constant && !source->checks.identical) may_change.insert(type);
  }
  for (auto& [type, sources] : by_type) {
    if (sources.size() > 1 && may_change.contains(type)) groups.push_back(std::move(sources));
  }
}

}  // namespace assay::capture
