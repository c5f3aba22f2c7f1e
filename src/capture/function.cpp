// Written against the C API: a call costs what CPython's own vectorcall costs, plus the scope.
#include "capture/function.h"

#include <structmember.h>

#include <unordered_set>

#include "capture/driver.h"
#include "capture/models.h"
#include "capture/stance.h"

namespace assay::capture {

namespace {

struct CapturedFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* dict;
  PyObject* weak_references;
  std::shared_ptr<SegmentCache>* cache;
};

CapturedFunction* cast(PyObject* object) { return reinterpret_cast<CapturedFunction*>(object); }

std::unordered_set<SegmentCache*>& all_caches() {
  static auto* const caches = new std::unordered_set<SegmentCache*>;  // guarded by the GIL
  return *caches;
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  CapturedFunction* captured = cast(self);
  const Ref function = Ref::borrow(captured->function);  // the call may let go of `self`
  // Inside a function that is being recorded, it is followed like any other.
  if (is_capturing()) return PyObject_Vectorcall(function.get(), args, count, names);
  const CaptureScope scope(stance() == Stance::force_eager ? nullptr : *captured->cache);
  return raise_unsupported_again(PyObject_Vectorcall(function.get(), args, count, names));
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
  if (object == nullptr || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->function);
  Py_VISIT(cast(self)->dict);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(cast(self)->function);
  Py_CLEAR(cast(self)->dict);
  return 0;
}

void deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (cast(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  clear(self);
  if (cast(self)->cache != nullptr) {
    all_caches().erase(cast(self)->cache->get());
    delete cast(self)->cache;
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CapturedFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CapturedFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CapturedFunction, weak_references), READONLY,
     nullptr},
    {"_function", T_OBJECT, offsetof(CapturedFunction, function), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                       {Py_tp_descr_get, reinterpret_cast<void*>(&bind)},
                       {Py_tp_members, members},
                       {Py_tp_getset, getset},
                       {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
                       {0, nullptr}};

PyType_Spec spec = {"assay._C.CapturedFunction", sizeof(CapturedFunction), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyTypeObject* captured_function_type() {
  static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

PyObject* make_captured_function(PyObject* function, std::shared_ptr<SegmentCache> cache) {
  PyTypeObject* type = captured_function_type();
  if (type == nullptr) return nullptr;
  prepare_models();
  PyObject* made = type->tp_alloc(type, 0);
  if (made == nullptr) return nullptr;
  cast(made)->vectorcall = call;
  cast(made)->function = Py_NewRef(function);
  all_caches().insert(cache.get());
  cast(made)->cache = new std::shared_ptr<SegmentCache>(std::move(cache));
  return made;
}

SegmentCache* cache_of(PyObject* captured) {
  return Py_TYPE(captured) == captured_function_type() ? cast(captured)->cache->get() : nullptr;
}

PyObject* function_of(PyObject* captured) {
  return Py_TYPE(captured) == captured_function_type() ? cast(captured)->function : nullptr;
}

void reset_all() {
  for (SegmentCache* cache : all_caches()) cache->clear();
}

}  // namespace assay::capture
