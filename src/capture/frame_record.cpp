#include "capture/frame_record.h"

#include <torch/csrc/utils/pybind.h>

#include "capture/hook.h"
#include "capture/raised.h"
#include "config/config.h"

namespace py = pybind11;

namespace assay::capture {

namespace {

struct FrameRecorder {
  Ref take;
  Ref keep;
};

// Guarded by the GIL; never destroyed.
FrameRecorder& frame_recorder() {
  static auto* const functions = new FrameRecorder;
  return *functions;
}

PyObject* name_of_local(const PyCodeObject* code, int index) {
  return PyTuple_GET_ITEM(code->co_localsplusnames, index);
}

// The arguments of a frame that has not executed anything yet, so that no variable is a cell.
void add_arguments(const _PyInterpreterFrame* frame, py::list& args, py::dict& kwargs) {
  const PyCodeObject* code = frame->f_code;
  int next = 0;
  const auto take = [&] { return py::reinterpret_borrow<py::object>(frame->localsplus[next++]); };
  while (next < code->co_argcount) args.append(take());
  while (next < code->co_argcount + code->co_kwonlyargcount) {
    const py::handle name = name_of_local(code, next);
    kwargs[name] = take();
  }
  if ((code->co_flags & CO_VARARGS) != 0) args.attr("extend")(take());
  if ((code->co_flags & CO_VARKEYWORDS) != 0) kwargs.attr("update")(take());
}

}  // namespace

void set_frame_recorder(PyObject* take, PyObject* keep) {
  frame_recorder() = {Ref::borrow(take), Ref::borrow(keep)};
}

Ref take_frame(const _PyInterpreterFrame* frame) {
  if (!config::get<"replay_record_enabled">()) return {};
  if ((frame->f_code->co_flags & CO_OPTIMIZED) == 0) return {};  // the body of a class or module
  const NativeFramesScope native;
  try {
    py::list args;
    py::dict kwargs;
    add_arguments(frame, args, kwargs);
    const py::handle function(reinterpret_cast<PyObject*>(frame->f_func));
    py::object taken = py::handle(frame_recorder().take.get())(function, args, kwargs);
    return Ref::steal(taken.release().ptr());
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("recording a frame");
    return {};
  }
}

void keep_frame(const Ref& taken, const CaptureSettings& settings) {
  if (!taken || PyErr_ExceptionMatches(PyExc_Exception) == 0) return;
  const NativeFramesScope native;
  const Ref failure = take_raised();
  try {
    py::handle(frame_recorder().keep.get())(py::handle(taken.get()), py::handle(failure.get()),
                                            py::handle(settings.backend_object.get()),
                                            settings.options, settings.fullgraph);
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("writing the record of a frame");
  }
  set_raised(failure);
}

}  // namespace assay::capture
