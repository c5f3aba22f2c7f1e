#include "capture/loop.h"

#include <alloca.h>

#include <cstring>
#include <memory>

#include "capture/exceptions.h"
#include "capture/execute.h"
#include "capture/operations.h"
#include "capture/stack.h"
#include "capture/tracing.h"

namespace assay::capture {

namespace {

thread_local Activation* innermost = nullptr;

class Loop {
 public:
  Loop(PyThreadState* thread, _PyInterpreterFrame* frame, Operations& operations,
       Boundary* boundary, Source** origins)
      : thread_(thread),
        frame_(frame),
        instructions_(_PyCode_CODE(frame->f_code)),
        eval_breaker_(assay_eval_breaker(thread)) {
    a_.thread = thread;
    a_.frame = frame;
    a_.code = frame->f_code;
    a_.locals = frame->localsplus;
    a_.stack = _PyFrame_Stackbase(frame);
    a_.origins = origins;
    a_.operations = &operations;
    a_.boundary = boundary;
  }

  PyObject* run(bool throwing);

 private:
  bool enter();
  void leave();
  PyObject* finish(PyObject* result);
  PyObject* hand_over(int index);
  PyObject* hand_over_raising();
  PyObject* step_until_end();
  Step ask_boundary();
  bool handle_exception(bool add_to_traceback, int lookup);

  PyThreadState* thread_;
  _PyInterpreterFrame* frame_;
  _Py_CODEUNIT* instructions_;
  const int* eval_breaker_;
  PyObject* keyword_names_ = nullptr;  // Borrowed; between KW_NAMES and CALL.
  Activation* outer_ = nullptr;
  _PyCFrame cframe_;
  Activation a_;
};

// Links the frame as CPython's evaluator does; false if that exceeds the recursion limit.
bool Loop::enter() {
  _PyCFrame* previous = thread_->cframe;
  cframe_.use_tracing = previous->use_tracing;
  cframe_.previous = previous;
  cframe_.current_frame = frame_;
  thread_->cframe = &cframe_;
  frame_->is_entry = true;
  frame_->previous = previous->current_frame;
  outer_ = innermost;
  innermost = &a_;
  if (thread_->recursion_remaining-- > 0 || assay_check_recursion(thread_) == 0) return true;
  --thread_->recursion_remaining;  // The check has counted back; so will leave().
  return false;
}

void Loop::leave() {
  ++thread_->recursion_remaining;
  innermost = outer_;
  thread_->cframe = cframe_.previous;
  thread_->cframe->use_tracing = cframe_.use_tracing;
}

PyObject* Loop::finish(PyObject* result) {
  _PyFrame_SetStackPointer(frame_, a_.top);
  a_.result = result;
  a_.operations->leaving(a_);
  leave();
  return a_.result;
}

// CPython executes the rest, from the instruction at `index`. Not through evaluate_natively: a hook
// below ours expects frames at their start.
PyObject* Loop::hand_over(int index) {
  frame_->prev_instr = instructions_ + index - 1;
  finish(nullptr);
  return _PyEval_EvalFrameDefault(thread_, frame_, 0);
}

// As hand_over, for an exception that is to be traced. CPython would first report the frame as
// called, as it does for generator.throw(); it does not while tracing seems to be off. Reporting
// the exception switches it on again.
PyObject* Loop::hand_over_raising() {
  a_.operations->unusual(a_, "tracing");
  finish(nullptr);
  thread_->cframe->use_tracing = 0;
  return _PyEval_EvalFrameDefault(thread_, frame_, 1);
}

PyObject* Loop::run(bool throwing) {
  if (!enter()) {
    leave();
    return nullptr;
  }
  a_.top = _PyFrame_GetStackPointer(frame_);
  a_.instruction = _PyInterpreterFrame_LASTI(frame_);
  a_.next = a_.instruction + 1;
  // While the frame is executed nobody but us knows how much of its stack is in use.
  frame_->stacktop = -1;
  a_.operations->entered(a_);
  if (throwing && !handle_exception(true, a_.instruction)) return finish(nullptr);
  return step_until_end();
}

Step Loop::ask_boundary() {
  frame_->prev_instr = instructions_ + a_.next;
  return a_.boundary->at_instruction(a_);
}

PyObject* Loop::step_until_end() {
  for (;;) {
    a_.instruction = a_.next;
    if (cframe_.use_tracing != 0) {
      a_.operations->unusual(a_, "tracing");
      return PyErr_Occurred() == nullptr ? hand_over(a_.next) : hand_over_raising();
    }
    Outcome outcome = Outcome::unfinished;
    if (a_.boundary != nullptr) {
      switch (ask_boundary()) {
        case Step::execute:
          break;
        case Step::moved:
          continue;
        case Step::returned:
          unwind_stack(a_, 0);
          return finish(a_.result);
        case Step::raised:
          outcome = Outcome::raised;
          break;
        case Step::hand_over:
          return hand_over(a_.next);
      }
    }
    int lookup = a_.next;  // where to look for a handler if this raises
    while (outcome == Outcome::unfinished) {
      const Instruction instruction = decode(instructions_, a_.next);
      lookup = instruction.index;
      frame_->prev_instr = instructions_ + instruction.index;
      a_.next = instruction.end;
      outcome = execute(a_, instruction, keyword_names_);
    }
    switch (outcome) {
      case Outcome::done:
      case Outcome::unfinished:
        continue;
      case Outcome::interruptible:
        if (!is_interrupted(eval_breaker_) || assay_handle_pending(thread_) == 0) continue;
        // As in CPython, the handler is that of where we would have gone on.
        lookup = a_.next - 1;
        break;
      case Outcome::raised:
      case Outcome::reraised:
        break;
      case Outcome::returned:
        return finish(a_.result);
      case Outcome::yielded:
        _PyFrame_GetGenerator(frame_)->gi_frame_state = FRAME_SUSPENDED;
        return finish(a_.result);
      case Outcome::not_executed:
        return hand_over(a_.instruction);
    }
    const bool is_new = outcome != Outcome::reraised;
    if (is_new && cframe_.use_tracing != 0 && thread_->c_tracefunc != nullptr) {
      return hand_over_raising();
    }
    if (!handle_exception(is_new, lookup)) {
      if (cframe_.use_tracing != 0) report_unwound(a_);
      return finish(nullptr);
    }
  }
}

// Goes to the handler of the exception that is set; false if there is none in this frame.
bool Loop::handle_exception(bool add_to_traceback, int lookup) {
  if (PyErr_Occurred() == nullptr) {
    PyErr_SetString(PyExc_SystemError, "error return without exception set");
  }
  keyword_names_ = nullptr;
  if (add_to_traceback) add_traceback(a_);
  Handler handler;
  do {
    if (!find_handler(a_.code, lookup, handler)) {
      unwind_stack(a_, 0);
      return false;
    }
  } while (!start_handler(a_, handler));
  return true;
}

}  // namespace

bool can_run(PyThreadState* thread, const _PyInterpreterFrame* frame) {
  return (frame->f_code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) == 0 &&
         thread->cframe->use_tracing == 0;
}

PyObject* run(PyThreadState* thread, _PyInterpreterFrame* frame, bool throwing,
              Operations& operations, Boundary* boundary) {
  const auto slots =
      static_cast<std::size_t>(frame->f_code->co_nlocalsplus + frame->f_code->co_stacksize);
  constexpr std::size_t kSlotsOnStack = 256;
  if (slots > kSlotsOnStack) {
    const auto origins = std::make_unique<Source*[]>(slots);
    return Loop(thread, frame, operations, boundary, origins.get()).run(throwing);
  }
  auto** origins = static_cast<Source**>(alloca(slots * sizeof(Source*)));
  std::memset(origins, 0, slots * sizeof(Source*));
  return Loop(thread, frame, operations, boundary, origins).run(throwing);
}

Activation* current_activation() { return innermost; }

}  // namespace assay::capture
