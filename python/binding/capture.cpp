#include "capture.h"

#include <optional>

#include "capture/hook.h"
#include "capture/loop.h"
#include "capture/operations.h"

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

// Negative: frames are not handed over.
int hand_over_after = -1;
bool runs_all_frames = false;

PyObject* run_any_frame(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  static capture::Operations plain;
  if (!capture::can_run(thread, frame)) {
    return capture::evaluate_natively(thread, frame, throwing);
  }
  if (hand_over_after < 0) return capture::run(thread, frame, throwing != 0, plain, nullptr);
  HandOver boundary(hand_over_after);
  return capture::run(thread, frame, throwing != 0, plain, &boundary);
}

void run_all_frames(bool enabled, std::optional<int> instructions) {
  hand_over_after = instructions.value_or(-1);
  if (enabled == runs_all_frames) return;
  if (enabled) {
    capture::install_hook(run_any_frame);
  } else {
    capture::uninstall_hook();
  }
  runs_all_frames = enabled;
}

}  // namespace

void add_capture(py::module_& module) {
  module.def("capture_run_all_frames", &run_all_frames, py::arg("enabled"),
             py::arg("hand_over_after") = py::none(),
             "For tests: send every frame of the process through the capture loop, which then does "
             "nothing but execute it; or its first instructions, and CPython the rest.");
}

}  // namespace assay::binding
