#include "capture/generators.h"

#include <utility>

#include "capture/hook.h"
#include "opcode.h"

namespace assay::capture {

namespace {

PyGenObject* as_generator(PyObject* generator) { return reinterpret_cast<PyGenObject*>(generator); }

_PyInterpreterFrame* frame_of(PyObject* generator) {
  return reinterpret_cast<_PyInterpreterFrame*>(as_generator(generator)->gi_iframe);
}

// The values in the frame, of which the stack's are the first `count` in all.
Ref state(PyGenObject* generator, int count) {
  auto* frame = reinterpret_cast<_PyInterpreterFrame*>(generator->gi_iframe);
  if (generator->gi_exc_state.exc_value != nullptr) return {};
  int instruction = _PyInterpreterFrame_LASTI(frame);
  if (_PyOpcode_Deopt[_Py_OPCODE(*frame->prev_instr)] == RETURN_GENERATOR) {
    instruction = kNotStarted;
  }
  Ref values = Ref::steal(PyTuple_New(count + 2));
  const Ref place = Ref::steal(PyLong_FromLong(instruction));
  PyTuple_SET_ITEM(values.get(), 0, Py_NewRef(reinterpret_cast<PyObject*>(frame->f_func)));
  PyTuple_SET_ITEM(values.get(), 1, Py_NewRef(place.get()));
  for (int i = 0; i < count; ++i) {
    PyObject* value = frame->localsplus[i];
    PyTuple_SET_ITEM(values.get(), i + 2, Py_NewRef(value == nullptr ? missing_value() : value));
  }
  return values;
}

}  // namespace

PyObject* missing_value() {
  static PyObject* const missing =
      PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return missing;
}

Ref state_of(PyObject* object) {
  if (!PyGen_CheckExact(object)) return {};
  PyGenObject* generator = as_generator(object);
  if (generator->gi_frame_state >= FRAME_COMPLETED) {
    const Ref place = Ref::steal(PyLong_FromLong(kEnded));
    return Ref::steal(PyTuple_Pack(3, Py_None, place.get(), generator->gi_code));
  }
  if (generator->gi_frame_state == FRAME_EXECUTING) return {};
  return state(generator, frame_of(object)->stacktop);
}

Ref state_of_entered(_PyInterpreterFrame* frame, int count) {
  return state(_PyFrame_GetGenerator(frame), count - 1);
}

Ref new_generator(PyObject* object) {
  auto* function = reinterpret_cast<PyFunctionObject*>(object);
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  const Ref args = Ref::steal(PyTuple_New(code->co_argcount));
  const Ref named = Ref::steal(PyDict_New());
  if (!args || !named) return {};
  for (int i = 0; i < code->co_argcount; ++i) {
    PyTuple_SET_ITEM(args.get(), i, Py_NewRef(Py_None));
  }
  for (int i = 0; i < code->co_kwonlyargcount; ++i) {
    PyDict_SetItem(named.get(), local_name_at(code, code->co_argcount + i), Py_None);
  }
  const NativeFramesScope native;
  return Ref::steal(PyObject_Call(object, args.get(), named.get()));
}

Ref ended_generator(PyObject* object) {
  auto* code = reinterpret_cast<PyCodeObject*>(object);
  const Ref globals = Ref::steal(PyDict_New());
  Ref function = Ref::steal(PyFunction_New(object, globals.get()));
  if (!function) return {};
  if (code->co_nfreevars > 0) {
    PyObject* closure = PyTuple_New(code->co_nfreevars);
    for (int i = 0; i < code->co_nfreevars; ++i) {
      PyTuple_SET_ITEM(closure, i, PyCell_New(nullptr));
    }
    reinterpret_cast<PyFunctionObject*>(function.get())->func_closure = closure;
  }
  Ref made = new_generator(function.get());
  const Ref closed = made ? Ref::steal(PyObject_CallMethod(made.get(), "close", nullptr)) : Ref();
  return closed ? std::move(made) : Ref();
}

void let_stand_at(PyObject* generator, int instruction, PyObject* const* values, int count) {
  _PyInterpreterFrame* frame = frame_of(generator);
  for (int i = 0; i < count; ++i) {
    PyObject* before = i < frame->stacktop ? frame->localsplus[i] : nullptr;
    frame->localsplus[i] = Py_XNewRef(values[i]);
    Py_XDECREF(before);
  }
  frame->stacktop = count;
  if (instruction == kNotStarted) return;
  frame->prev_instr = _PyCode_CODE(frame->f_code) + instruction;
  as_generator(generator)->gi_frame_state = FRAME_SUSPENDED;
}

}  // namespace assay::capture
