#include "capture/exceptions.h"

#include "capture/stack.h"

namespace assay::capture {

namespace {

// Numbers in the table are 6 bits per byte, most significant first; bit 6 says that more follow,
// bit 7 marks the first byte of an entry.
const unsigned char* read_number(const unsigned char* at, int& number) {
  number = *at & 63;
  while ((*at & 64) != 0) number = (number << 6) | (*++at & 63);
  return at + 1;
}

// Entries are sorted by start, and long tables are searched by halves.
const unsigned char* skip_to_near(const unsigned char* begin, const unsigned char* end, int index) {
  constexpr int kScanned = 40;
  while (end - begin > kScanned) {
    const unsigned char* middle = begin + (end - begin) / 2;
    while ((*middle & 128) == 0) --middle;
    int start = 0;
    read_number(middle, start);
    if (start > index) {
      end = middle;
    } else if (middle == begin) {
      break;
    } else {
      begin = middle;
    }
  }
  return begin;
}

}  // namespace

bool find_handler(const PyCodeObject* code, int index, Handler& handler) {
  const auto* at =
      reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(code->co_exceptiontable));
  const unsigned char* end = at + PyBytes_GET_SIZE(code->co_exceptiontable);
  at = skip_to_near(at, end, index);
  while (at < end) {
    int start = 0;
    int size = 0;
    int depth_and_lasti = 0;
    at = read_number(at, start);
    if (start > index) return false;
    at = read_number(at, size);
    at = read_number(at, handler.target);
    at = read_number(at, depth_and_lasti);
    if (index < start + size) {
      handler.depth = depth_and_lasti >> 1;
      handler.wants_lasti = (depth_and_lasti & 1) != 0;
      return true;
    }
  }
  return false;
}

void add_traceback(Activation& a) {
  if (_PyFrame_IsIncomplete(a.frame)) return;
  // Ours is the innermost frame.
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame != nullptr) PyTraceBack_Here(frame);
}

void unwind_stack(Activation& a, int depth) {
  while (a.stack_depth() > depth) {
    PyObject* value = take(a);
    Py_XDECREF(value);
  }
}

bool start_handler(Activation& a, const Handler& handler) {
  unwind_stack(a, handler.depth);
  if (handler.wants_lasti) {
    PyObject* lasti = PyLong_FromLong(_PyInterpreterFrame_LASTI(a.frame));
    if (lasti == nullptr) return false;
    push(a, lasti);
  }
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyException_SetTraceback(value, traceback != nullptr ? traceback : Py_None);
  Py_XDECREF(traceback);
  Py_XDECREF(type);
  push(a, value);
  a.next = handler.target;
  return true;
}

bool reraise(Activation& a, int depth) {
  if (depth != 0) {
    PyObject* lasti = object_at(a, depth + 1);
    if (!PyLong_Check(lasti)) {
      PyErr_SetString(PyExc_SystemError, "lasti is not an int");
      return false;
    }
    a.frame->prev_instr = _PyCode_CODE(a.code) + PyLong_AsLong(lasti);
  }
  PyObject* exception = take(a);
  PyErr_Restore(Py_NewRef(PyExceptionInstance_Class(exception)), exception,
                PyException_GetTraceback(exception));
  return true;
}

}  // namespace assay::capture
