#include "capture.h"

#include <optional>

#include "capture/hook.h"
#include "capture/loop.h"
#include "capture/operations.h"
#include "capture_checks.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

// For tests: hands every frame over to CPython when it has executed so many instructions.
class HandOver final : public capture::Boundary {
 public:
  explicit HandOver(int instructions) : left_(instructions) {}

  capture::Step at_instruction(capture::Activation& /*activation*/) override {
    return left_-- > 0 ? capture::Step::execute : capture::Step::hand_over;
  }

 private:
  int left_;
};

// What to do with all frames. Guarded by the GIL.
struct AllFrames {
  bool enabled = false;
  bool checked = false;
  std::optional<int> hand_over_after;
};

AllFrames& all_frames() {
  static AllFrames instance;
  return instance;
}

PyObject* run_any_frame(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  static capture::Operations plain;
  if (!capture::can_run(thread, frame)) {
    return capture::evaluate_natively(thread, frame, throwing);
  }
  if (all_frames().checked) {
    static CheckedOperations checked;
    CheckedBoundary boundary;
    return capture::run(thread, frame, throwing != 0, checked, &boundary);
  }
  if (all_frames().hand_over_after) {
    HandOver boundary(*all_frames().hand_over_after);
    return capture::run(thread, frame, throwing != 0, plain, &boundary);
  }
  return capture::run(thread, frame, throwing != 0, plain, nullptr);
}

void run_all_frames(bool enabled, std::optional<int> hand_over_after, bool checked) {
  const bool was_enabled = all_frames().enabled;
  all_frames() = {enabled, checked, hand_over_after};
  if (enabled && !was_enabled) capture::install_hook(run_any_frame);
  if (!enabled && was_enabled) capture::uninstall_hook();
}

}  // namespace

void add_capture(py::module_& module) {
  module.def("capture_run_all_frames", &run_all_frames, py::arg("enabled"),
             py::arg("hand_over_after") = py::none(), py::arg("checked") = false,
             "For tests: send every frame of the process through the capture loop, which then does "
             "nothing but execute it; or its first instructions, and CPython the rest. With "
             "`checked`, also watch that the loop keeps its promises to operations.");
}

}  // namespace assay::binding
