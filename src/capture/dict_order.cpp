#include "capture/dict_order.h"

namespace assay::capture {

Ref keys_in_order(PyObject* dict) {
  if (!PyODict_Check(dict)) return Ref::steal(PyDict_Keys(dict));
  // Not PySequence_List: a subclass may have an __iter__ of its own.
  const Ref iterator = Ref::steal(PyODict_Type.tp_iter(dict));
  return iterator ? Ref::steal(PySequence_List(iterator.get())) : Ref();
}

Ref copy_in_order(PyObject* dict) {
  if (!PyODict_Check(dict)) return Ref::steal(PyDict_Copy(dict));
  const Ref keys = keys_in_order(dict);
  Ref copy = Ref::steal(PyDict_New());
  if (!keys || !copy) return {};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    PyObject* key = PyList_GET_ITEM(keys.get(), i);
    PyObject* value = PyDict_GetItemWithError(dict, key);
    if (value == nullptr || PyDict_SetItem(copy.get(), key, value) < 0) return {};
  }
  return copy;
}

}  // namespace assay::capture
