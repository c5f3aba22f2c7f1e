#include "capture.h"

#include "capture/hook.h"
#include "capture/loop.h"
#include "capture/operations.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

PyObject* run_any_frame(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  static capture::Operations plain;
  if (!capture::can_run(thread, frame)) {
    return capture::evaluate_natively(thread, frame, throwing);
  }
  return capture::run(thread, frame, throwing != 0, plain, nullptr);
}

void run_all_frames(bool enabled) {
  static bool is_enabled = false;
  if (enabled == is_enabled) return;
  if (enabled) {
    capture::install_hook(run_any_frame);
  } else {
    capture::uninstall_hook();
  }
  is_enabled = enabled;
}

}  // namespace

void add_capture(py::module_& module) {
  module.def("capture_run_all_frames", &run_all_frames, py::arg("enabled"),
             "For tests: send every frame of the process through the capture loop, which then does "
             "nothing but execute it.");
}

}  // namespace assay::binding
