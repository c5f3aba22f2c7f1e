#include "capture/raised.h"

#include "capture/hook.h"

namespace assay::capture {

Ref take_raised() {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == nullptr) return {};
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_DECREF(type);
  Py_XDECREF(traceback);
  return Ref::steal(value);
}

void set_raised(const Ref& error) {
  PyObject* value = error.get();
  // Not PyErr_SetObject, which would make an exception that is handled here its context.
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(value))), Py_NewRef(value),
                PyException_GetTraceback(value));
}

void add_note(const Ref& error, const std::string& note) {
  const NativeFramesScope native;
  const Ref added = Ref::steal(PyObject_CallMethod(error.get(), "add_note", "s", note.c_str()));
  if (!added) PyErr_WriteUnraisable(error.get());
}

std::string text_of_raised(const Ref& error, bool with_traceback) {
  const NativeFramesScope native;
  const Ref module = Ref::steal(import_module("traceback"));
  const char* function = with_traceback ? "format_exception" : "format_exception_only";
  const Ref lines =
      Ref::steal(module ? PyObject_CallMethod(module.get(), function, "O", error.get()) : nullptr);
  const Ref nothing = Ref::steal(PyUnicode_FromString(""));
  const Ref text =
      Ref::steal(lines && nothing ? PyUnicode_Join(nothing.get(), lines.get()) : nullptr);
  const char* characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (characters == nullptr) {
    PyErr_WriteUnraisable(error.get());
    return Py_TYPE(error.get())->tp_name;
  }
  std::string made = characters;
  while (made.ends_with('\n')) made.pop_back();
  return made;
}

}  // namespace assay::capture
