// types.MappingProxyType: what is asked of a proxy is asked of the dict behind it.
#include "capture/models/table.h"

namespace assay::capture {

namespace {

// As in CPython's descrobject.c.
struct MappingProxy {
  PyObject_HEAD PyObject* mapping;
};

PyObject* make_proxy(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !PyDict_Check(call.args[0]) || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "a proxy of an object that is not a known dict");
  }
  PyObject* made = recorder.call_watched(a, call);
  if (made != nullptr) recorder.track_local(made);
  return made;
}

PyObject* asks_mapping(Recorder& recorder, Activation& a, const Call& call) {
  PyObject* mapping = call.count == 0 ? nullptr : mapping_behind(recorder, call.args[0]);
  const Ref name = Ref::steal(PyObject_GetAttrString(call.callable, "__name__"));
  if (mapping == nullptr || !name) {
    return recorder.call_plainly(a, call, "a proxy of a mapping that is not known");
  }
  const Ref kept = Ref::borrow(mapping);
  const Ref method = Ref::steal(recorder.get_attribute(a, mapping, name.get()));
  if (!method) return nullptr;
  return recorder.call_object(a, {method.get(), call.args + 1, call.count - 1, call.names});
}

}  // namespace

PyObject* mapping_of_proxy(PyObject* object) {
  if (Py_TYPE(object) != &PyDictProxy_Type) return nullptr;
  PyObject* mapping = reinterpret_cast<MappingProxy*>(object)->mapping;
  return PyDict_Check(mapping) ? mapping : nullptr;
}

PyObject* mapping_behind(Recorder& recorder, PyObject* object) {
  PyObject* mapping = mapping_of_proxy(object);
  if (mapping == nullptr || !recorder.touch(object)) return nullptr;
  if (recorder.find(mapping) == nullptr) {
    recorder.guard_identity(object);  // it never gets another one
    recorder.found_fixed(mapping);
  }
  return mapping;
}

ModelTable mapping_proxy_models() {
  return {
      {"types.MappingProxyType", make_proxy},
      {"types.MappingProxyType.get", asks_mapping},
      {"types.MappingProxyType.items", asks_mapping},
      {"types.MappingProxyType.keys", asks_mapping},
      {"types.MappingProxyType.values", asks_mapping},
      {"types.MappingProxyType.copy", asks_mapping},
      {"types.MappingProxyType.__getitem__", asks_mapping},
      {"types.MappingProxyType.__contains__", asks_mapping},
      {"types.MappingProxyType.__iter__", asks_mapping},
      {"types.MappingProxyType.__len__", asks_mapping},
      {"types.MappingProxyType.__reversed__", asks_mapping},
  };
}

}  // namespace assay::capture
