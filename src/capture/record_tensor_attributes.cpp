// Attributes of tensors: metadata are constants, views become nodes of the graph.
#include <string>
#include <string_view>
#include <unordered_set>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// Attributes that follow from what tensor guards check.
bool is_metadata(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {
      "shape",   "dtype",     "device",    "ndim",         "requires_grad", "is_leaf",   "layout",
      "is_cuda", "is_cpu",    "is_sparse", "is_quantized", "is_meta",       "is_nested", "is_mps",
      "is_xpu",  "is_mkldnn", "itemsize",  "nbytes",       "is_sparse_csr", "is_ipu",    "is_hpu",
      "is_xla",  "is_vulkan", "is_mtia",   "is_maia",      "_is_param"};
  return names.contains(name);
}

bool is_view_attribute(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {"T", "mT", "H", "mH", "real", "imag"};
  return names.contains(name);
}

}  // namespace

PyObject* Recorder::tensor_attribute(Activation& a, PyObject* tensor, PyObject* name) {
  const std::string text = to_string(name);
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return PyObject_GetAttr(tensor, name);
  };
  if (!is_plain_tensor(tensor)) return plainly("a tensor subclass with behavior of its own");
  if ((text == "shape" || text == "ndim" || text == "nbytes") && has_open_size(tensor)) {
    return plainly("the '" + text + "' of a tensor follows from values");
  }
  if (has_varying_size(tensor)) {
    if (text == "shape") return made(a, sizes_of(tensor), "the shape of a tensor");
    if (text == "nbytes") fix_all_sizes("nbytes");
  }
  if (is_metadata(text)) return made(a, PyObject_GetAttr(tensor, name), "an attribute of a tensor");
  if (is_view_attribute(text)) {
    static PyObject* const function = PyObject_GetAttrString(import_module("builtins"), "getattr");
    PyObject* args[] = {nullptr, tensor, name};
    return call_tensor_function(a, "getattr", false, {function, args + 1, 2, nullptr});
  }
  if (text == "__class__") {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
    is_constant(type);
    return Py_NewRef(type);
  }
  if (text == "grad_fn" && tensor_of(tensor).is_leaf()) return Py_NewRef(Py_None);  // guarded
  PyObject* descriptor = lookup_on_type(Py_TYPE(tensor), name);
  if (descriptor != nullptr && Py_TYPE(descriptor) == &PyGetSetDescr_Type) {
    Tracked* tracked = tracked_.find(tensor);
    if (text == "grad" && tracked->source != nullptr) {
      PyObject* found = PyObject_GetAttr(tensor, name);
      if (found == nullptr) return nullptr;
      Source* source = sources_.get(Access::member, tracked->source, descriptor);
      if (!arrived(found, source)) {
        Py_DECREF(found);
        return plainly("the gradient of a tensor");
      }
      return found;
    }
    // backward() ends a segment: what was made in this one has no gradient yet.
    if (text == "grad" && tracked->kind == Tracked::Kind::node &&
        !tensor_of(tensor).requires_grad() && !tensor_of(tensor).grad().defined()) {
      return Py_NewRef(Py_None);
    }
    if (text == "data" && tracked->varying == 0) {
      // Unlike x.data, x.detach() counts what is changed through it: backward refuses to use it.
      static PyObject* const detach =
          PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type()), "detach");
      PyObject* args[] = {nullptr, tensor};
      return call_tensor_function(a, "detach", true, {detach, args + 1, 1, nullptr});
    }
    if (text == "__dict__") return plainly("a tensor's __dict__");
    return plainly("the attribute '" + text + "' of a tensor");
  }
  if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_get != nullptr) {
    if (PyFunction_Check(descriptor) || Py_TYPE(descriptor) == &PyMethodDescr_Type ||
        Py_TYPE(descriptor) == &PyWrapperDescr_Type) {
      return bind_descriptor(a, descriptor, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor)),
                             name);
    }
    return plainly("the attribute '" + text + "' of a tensor");
  }
  Tracked* tracked = tracked_.find(tensor);
  if (tracked->source != nullptr) {
    if (PyObject* dict = dict_of(tensor)) {
      PyObject* found = read_item(dict, name);
      if (found != nullptr) return Py_NewRef(found);
    }
    if (descriptor == nullptr) return PyObject_GetAttr(tensor, name);  // raises AttributeError
  } else if (descriptor == nullptr) {
    PyObject* found = PyObject_GetAttr(tensor, name);
    if (found == nullptr) return nullptr;
    return made(a, found, "an attribute of a tensor");
  }
  return plainly("the attribute '" + text + "' of a tensor");
}

}  // namespace assay::capture
