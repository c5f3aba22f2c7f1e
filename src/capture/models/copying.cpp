// copy.copy and copy.deepcopy of containers and plain objects: what they are made of is known and
// guarded, and the copies are new objects of the segment. Configurations of models are copied while
// they run. Whatever has a say in how it is copied ends the segment.
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

constexpr int kMaxDepth = 50;

// Neither the class nor copyreg says how its objects are copied: by their __dict__.
bool is_copied_by_dict(Recorder& recorder, PyObject* object) {
  static PyObject* const registered = [] {
    const Ref module = Ref::steal(import_module("copyreg"));
    return PyObject_GetAttrString(module.get(), "dispatch_table");
  }();
  PyTypeObject* type = Py_TYPE(object);
  const Ref slots = slots_of(type);  // not in the __dict__
  if (PyList_GET_SIZE(slots.get()) > 0 || !has_object_layout(type) ||
      type->tp_new != PyBaseObject_Type.tp_new || PyType_IsSubtype(type, module_type()) != 0 ||
      PyDict_Contains(registered, reinterpret_cast<PyObject*>(type)) != 0) {
    return false;
  }
  for (const char* name :
       {"__copy__", "__deepcopy__", "__setstate__", "__reduce__", "__reduce_ex__", "__getstate__",
        "__getnewargs__", "__getnewargs_ex__", "__del__"}) {
    const Ref text = Ref::steal(PyUnicode_InternFromString(name));
    PyObject* found = recorder.lookup_on_type(type, text.get());
    if (found != _PyType_Lookup(&PyBaseObject_Type, text.get())) return false;
  }
  return true;
}

// One call of copy.copy or copy.deepcopy.
class Copy {
 public:
  Copy(Recorder& recorder, Activation& a, bool is_deep)
      : recorder_(recorder), a_(a), is_deep_(is_deep) {}

  /// Null without an exception: not modelled.
  Ref of(PyObject* object, int depth = 0) {
    if (is_scalar(object)) return Ref::borrow(object);
    if (depth > kMaxDepth || !recorder_.touch(object) || is_tensor(object)) return {};
    if (is_identity_object(object) || PyFunction_Check(object)) {
      return PyModule_Check(object) ? Ref() : Ref::borrow(object);
    }
    if (const auto found = memo_.find(object); found != memo_.end()) return found->second;
    if (PyList_CheckExact(object)) return of_list(object, depth);
    if (PyTuple_CheckExact(object)) return of_tuple(object, depth);
    if (PyDict_CheckExact(object)) {
      Ref made = Ref::steal(recorder_.build_map(a_, nullptr, nullptr, 0));
      if (!made) return {};
      memo_.emplace(object, made);
      return copy_items(object, made.get(), depth) ? made : Ref();
    }
    if (PySet_CheckExact(object)) return of_set(object);
    if (is_copied_by_dict(recorder_, object)) return of_object(object, depth);
    return {};
  }

 private:
  Ref item(PyObject* object, int depth) {
    if (is_deep_) return of(object, depth + 1);
    return recorder_.touch(object) ? Ref::borrow(object) : Ref();
  }

  Ref of_list(PyObject* object, int depth) {
    if (!recorder_.know_contents(object)) return {};
    Ref made = Ref::steal(recorder_.build_list(a_, nullptr, nullptr, 0));
    if (!made) return {};
    memo_.emplace(object, made);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object); ++i) {
      const Ref copied = item(PyList_GET_ITEM(object, i), depth);
      if (!copied || !recorder_.append(made.get(), copied.get())) return {};
    }
    return made;
  }

  Ref of_tuple(PyObject* object, int depth) {
    if (!is_deep_) return Ref::borrow(object);
    if (!recorder_.know_contents(object)) return {};
    std::vector<Ref> kept;
    std::vector<PyObject*> items;
    bool is_same = true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      kept.push_back(item(PyTuple_GET_ITEM(object, i), depth));
      if (!kept.back()) return {};
      items.push_back(kept.back().get());
      is_same = is_same && items.back() == PyTuple_GET_ITEM(object, i);
    }
    if (is_same) return Ref::borrow(object);
    const std::vector<Source*> origins(items.size(), nullptr);
    Ref made = Ref::steal(recorder_.build_tuple(a_, items.data(), origins.data(), items.size()));
    if (made) memo_.emplace(object, made);
    return made;
  }

  Ref of_set(PyObject* object) {
    if (!recorder_.know_contents(object)) return {};
    PyObject* key = nullptr;
    Py_ssize_t position = 0;
    Py_hash_t hash = 0;
    while (_PySet_NextEntry(object, &position, &key, &hash) != 0) {
      if (!is_scalar(key)) return {};
    }
    Ref made = Ref::steal(PySet_New(object));
    if (!made) return {};
    recorder_.track_local(made.get());
    memo_.emplace(object, made);
    return made;
  }

  bool copy_items(PyObject* from, PyObject* to, int depth) {
    if (!recorder_.know_contents(from)) return false;
    const Ref items = Ref::steal(PyDict_Items(from));
    if (!items) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      PyObject* key = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0);
      PyObject* value = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 1);
      if (!is_scalar(key)) return false;
      const Ref copied = item(value, depth);
      if (!copied ||
          !recorder_.store_item(a_, {to, nullptr}, {key, nullptr}, {copied.get(), nullptr})) {
        return false;
      }
    }
    return true;
  }

  Ref of_object(PyObject* object, int depth) {
    PyObject* from = recorder_.dict_of(object);
    if (from == nullptr) return {};
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    recorder_.is_constant(type);
    const Ref no_arguments = Ref::steal(PyTuple_New(0));
    Ref made = Ref::steal(PyBaseObject_Type.tp_new(Py_TYPE(object), no_arguments.get(), nullptr));
    if (!made) return {};
    recorder_.track_local(made.get());
    memo_.emplace(object, made);
    PyObject* to = recorder_.dict_of(made.get());
    return to != nullptr && copy_items(from, to, depth) ? made : Ref();
  }

  Recorder& recorder_;
  Activation& a_;
  bool is_deep_;
  std::unordered_map<PyObject*, Ref> memo_;
};

template <bool is_deep>
PyObject* copy(Recorder& recorder, Activation& a, const Call& call) {
  const std::string name = is_deep ? "copy.deepcopy" : "copy.copy";
  if (call.count != 1 || call.names != nullptr) {
    return recorder.call_plainly(a, call, name + " with a memo");
  }
  Ref made = Copy(recorder, a, is_deep).of(call.args[0]);
  if (made && recorder.is_recording()) return made.release();
  if (PyErr_Occurred() != nullptr) return nullptr;
  return recorder.call_plainly(a, call,
                               name + " of an object of type '" +
                                   std::string(Py_TYPE(call.args[0])->tp_name) +
                                   "', which is not modelled");
}

}  // namespace

ModelTable copying_models() {
  return {
      {"copy.copy", copy<false>},
      {"copy.deepcopy", copy<true>},
  };
}

}  // namespace assay::capture
