#include "capture/driver.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <utility>

#include "assay/error.h"
#include "capture/code_facts.h"
#include "capture/hook.h"
#include "capture/loop.h"
#include "capture/recorder.h"
#include "capture/trace_log.h"
#include "config/config.h"
#include "graph/print.h"
#include "observe/observe.h"
#include "opcode.h"
#include "repro/debug.h"

namespace assay::capture {

namespace {

// Recordings without an operator, after which an instruction is no longer tried.
constexpr int kEmptyRecordings = 3;

class ThreadCapture;
ThreadCapture& this_thread();

PyObject*& unsupported_class() {
  static PyObject* type = nullptr;
  return type;
}

std::string text_of(const std::vector<CodeLine>& stack) {
  std::string text;
  for (const CodeLine& line : stack) {
    text += "\n  File \"" + line.file + "\", line " + std::to_string(line.line) + ", in " +
            line.function;
    if (!line.text.empty()) text += "\n    " + line.text;
  }
  return text;
}

// What one thread captures.
class ThreadCapture : public SegmentSink {
 public:
  ThreadCapture() : recorder(*this) {}

  bool finished(Activation& root, int start, std::unique_ptr<Segment> segment,
                std::vector<c10::IValue> example_inputs) override;

  Recorder recorder;
  std::shared_ptr<SegmentCache> cache;
  std::string recompile_reason;
  /// With the setting `paranoid`: a segment whose guards hold, recorded once more beside it.
  const Segment* expected = nullptr;
  const CaptureRecord* compiling = nullptr;
};

ThreadCapture& this_thread() {
  static thread_local ThreadCapture* const capture = new ThreadCapture;
  return *capture;
}

// Compiles the graph of a segment. The inputs are examples.
void compile(Segment& segment, const CaptureSettings& settings,
             std::vector<c10::IValue> example_inputs) {
  CompileRequest request;
  request.graph = segment.graph;
  request.inputs = std::move(example_inputs);
  request.options = settings.options;
  const at::AutoGradMode mode(segment.runs_with_grad || at::GradMode::is_enabled());
  const pybind11::gil_scoped_release unlocked;
  try {
    if (segment.mutates_history && settings.backend->compiles_halves) {
      throw TraceError("an input that takes part in autograd is changed in place");
    }
    segment.compiled = repro::compile_with_debug(*settings.backend, request);
  } catch (const TraceError& error) {
    // The program is fine, but cannot be differentiated ahead of time: its captured graph runs as
    // it is.
    observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
      return "running a captured graph with backend eager: " + error.detail().message;
    });
    request.options.clear();
    segment.compiled = repro::compile_with_debug(*find_backend("eager"), std::move(request));
  }
}

// Empty if a recording came to the same as the segment that would have been replayed.
std::string difference(const Segment& before, const Segment& now) {
  if (now.guards == nullptr) return "the segment cannot be made again: " + now.reason.reason;
  if (now.end != before.end || (now.result < 0) != (before.result < 0)) {
    return "the program took another way";
  }
  if ((now.graph == nullptr) != (before.graph == nullptr)) return "the graph is another one";
  if (now.graph != nullptr) {
    const std::string text = graph::print(*now.graph);
    if (text != graph::print(*before.graph)) return "the graph is another one:\n" + text;
  }
  if (now.effects.size() != before.effects.size()) return "the effects are others";
  if (now.slots.size() != before.slots.size()) return "other variables were set";
  return "";
}

bool ThreadCapture::finished(Activation& root, int start, std::unique_ptr<Segment> segment,
                             std::vector<c10::IValue> example_inputs) {
  const std::shared_ptr<SegmentCache> into = cache;
  if (const Segment* before = std::exchange(expected, nullptr)) {
    const std::string what = difference(*before, *segment);
    if (what.empty()) return true;
    const CodeLine place = line_of(root.code, start);
    PyErr_SetString(
        PyExc_AssertionError,
        ("paranoid: " + what + ", although the guards of the segment hold\n  File \"" + place.file +
         "\", line " + std::to_string(place.line) + ", in " + place.function)
            .c_str());
    return false;
  }
  const BreakReason& reason = segment->reason;
  const bool is_break = !reason.reason.empty() && reason.is_break;
  SegmentStart& at = into->of(root.code).starts[start];
  const CodeLine place = line_of(root.code, start);
  const std::vector<CodeLine> stack = is_break ? lines_since(root) : std::vector<CodeLine>{};
  log_step("done tracing", place);
  if (is_break) {
    observe::artifact(observe::Artifact::graph_breaks,
                      [&] { return "Graph break: " + reason.reason + text_of(stack); });
  }
  const bool is_worth_a_record = segment->graph != nullptr || is_break;
  if (is_worth_a_record) {
    into->records.push_back(
        {place.function, place.file, place.line, segment->graph,
         segment->guards == nullptr ? std::vector<std::string>{} : segment->guards->describe(),
         reason, stack, recompile_reason});
  }
  recompile_reason.clear();
  if (is_break && into->settings.fullgraph) {
    PyErr_SetString(unsupported_class(), (reason.reason + text_of(stack) +
                                          "\n  fullgraph=True does not allow graph breaks; "
                                          "rewrite this line, or compile with fullgraph=False")
                                             .c_str());
    return false;
  }
  if (segment->guards == nullptr || segment->graph == nullptr) {
    ++at.empty;
    if (segment->end == start && segment->result < 0) at.breaks_at_once = true;
    return true;
  }
  observe::artifact(observe::Artifact::graph_code, [&] { return graph::print(*segment->graph); });
  observe::artifact(observe::Artifact::graph, [&] { return graph_table(*segment->graph); });
  observe::artifact(observe::Artifact::guards, [&] {
    std::string text = "GUARDS:";
    for (const std::string& line : segment->guards->describe()) text += "\n  " + line;
    return text;
  });
  cache = nullptr;  // what the backend runs is not captured
  const CaptureRecord record = into->records.back();
  compiling = &record;
  bool ok = true;
  try {
    compile(*segment, into->settings, std::move(example_inputs));
  } catch (pybind11::error_already_set& error) {
    error.restore();
    ok = false;
  } catch (...) {
    pybind11::detail::try_translate_exceptions();
    ok = false;
  }
  cache = into;
  compiling = nullptr;
  if (!ok && config::get<"suppress_errors">()) {
    PyErr_WriteUnraisable(nullptr);
    return true;
  }
  if (!ok) return false;
  at.segments.insert(at.segments.begin(), std::move(segment));
  return true;
}

// Whether the setting `debug_function` leaves a function to be captured.
bool is_wanted(PyCodeObject* code) {
  const std::string wanted = config::get<"debug_function">();
  return wanted.empty() || PyUnicode_CompareWithASCIIString(code->co_name, wanted.c_str()) == 0;
}

// Modes see every call of a tensor function, and may do anything then: what runs under one is not
// captured.
bool is_under_modes() {
  using Functions = at::impl::PythonTorchFunctionTLS;
  return Functions::stack_len() > 0 || c10::impl::TorchDispatchModeTLS::stack_len() > 0 ||
         Functions::get_disabled_state() != at::impl::TorchFunctionDisabledState::ENABLED;
}

// Watches the instruction boundaries of one frame.
class FrameDriver : public Boundary {
 public:
  FrameDriver(ThreadCapture& capture, bool takes_segments)
      : capture_(capture), takes_segments_(takes_segments) {}

  Step at_instruction(Activation& a) override {
    Recorder& recorder = capture_.recorder;
    if (recorder.is_recording()) {
      log_instruction(a);
      if (recorder.root() != &a) return Step::execute;
      recorder.checkpoint(a);
      if (instruction_at(a.code, a.instruction).opcode != RETURN_VALUE) return Step::execute;
      return recorder.finish_with_return(a) ? Step::execute : Step::raised;
    }
    if (a.instruction == skip_at_) {
      skip_at_ = -1;
      return Step::execute;
    }
    if (!takes_segments_ || capture_.cache == nullptr) return Step::hand_over;
    // What a compiled graph saves for backward is not what hooks of the caller expect to see.
    if (at::SavedTensorDefaultHooks::get_hooks()) return Step::execute;
    const int opcode = instruction_at(a.code, a.instruction).opcode;
    // Nothing can be gained by starting here; iterators of older segments go on by themselves.
    if (opcode == RETURN_VALUE || opcode == FOR_ITER || opcode == RERAISE ||
        opcode == JUMP_BACKWARD || opcode == JUMP_FORWARD) {
      return Step::execute;
    }
    return start(a);
  }

 private:
  Step start(Activation& a) {
    if (is_under_modes()) return Step::execute;
    SegmentCache::Code& code = capture_.cache->of(a.code);
    SegmentStart& at = code.starts[a.instruction];
    if (is_plain_ && at.segments.empty()) return Step::execute;
    is_plain_ = false;
    const guards::GlobalState state = guards::GlobalState::current();
    for (std::size_t i = 0; i < at.segments.size(); ++i) {
      const Segment& segment = *at.segments[i];
      GuardValues values;
      if (!segment.guards->hold(a, state, values) || !segment.shares_memory_as_before(values)) {
        continue;
      }
      if (i > 0)
        std::rotate(at.segments.begin(), at.segments.begin() + static_cast<std::ptrdiff_t>(i),
                    at.segments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      if (config::get<"paranoid">()) {
        capture_.expected = &segment;
        capture_.recorder.begin(a);
        return Step::execute;
      }
      return replay(a, segment, values);
    }
    if (at.breaks_at_once) return Step::execute;
    if (at.empty >= kEmptyRecordings) {
      is_plain_ = true;
      return Step::execute;
    }
    return record(a, code, at, state);
  }

  Step replay(Activation& a, const Segment& segment, const GuardValues& values) {
    ++capture_.cache->replays;
    // What a backend's function calls is not captured again.
    std::shared_ptr<SegmentCache> kept = std::move(capture_.cache);
    const bool ok = segment.replay(a, values);
    capture_.cache = std::move(kept);
    if (ok) {
      if (segment.result >= 0) return Step::returned;
      skip_at_ = segment.end;
      return Step::moved;
    }
    // The graph raised: nothing has been changed, so the loop runs this part for the exact state
    // and traceback. Where inputs were written to, that would be done twice.
    if (segment.mutates_inputs || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) {
      return Step::raised;
    }
    PyErr_Clear();
    is_plain_ = true;
    return Step::execute;
  }

  Step record(Activation& a, SegmentCache::Code& code, SegmentStart& at,
              const guards::GlobalState& state) {
    if (!is_wanted(a.code)) return Step::hand_over;
    if (!at.segments.empty()) {
      const std::string reason = at.segments.front()->guards->failure(a, state);
      const CodeLine place = line_of(a.code, a.instruction);
      observe::artifact(observe::Artifact::recompiles, [&] {
        return "Recompiling function " + place.function + " in " + place.file + ":" +
               std::to_string(place.line) + "\n    triggered by: " + reason;
      });
      const std::size_t limit = capture_.cache->settings.cache_limit.value_or(
          static_cast<std::size_t>(config::get<"cache_size_limit">()));
      if (at.segments.size() >= limit) {
        if (!at.has_warned) {
          at.has_warned = true;
          observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
            return "hit cache_size_limit (" + std::to_string(limit) + ")\n   function: '" +
                   place.function + "' (" + place.file + ":" + std::to_string(place.line) +
                   ")\n   last reason: " + reason +
                   "\n   calls that fit none of the compiled segments run eagerly from now on";
          });
        }
        is_plain_ = true;
        const bool has_more = std::ranges::any_of(code.starts, [&](const auto& other) {
          return other.first > a.instruction && !other.second.segments.empty();
        });
        return has_more ? Step::execute : Step::hand_over;
      }
      capture_.recompile_reason = reason;
    }
    capture_.expected = nullptr;
    log_step("start tracing", line_of(a.code, a.instruction));
    capture_.recorder.begin(a);
    log_instruction(a);
    return Step::execute;
  }

  ThreadCapture& capture_;
  bool takes_segments_;
  bool is_plain_ = false;  // executing without recording, up to the next known segment
  int skip_at_ = -1;       // the instruction that ended the segment just replayed
};

PyObject* evaluate(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  ThreadCapture& capture = this_thread();
  Recorder& recorder = capture.recorder;
  if (capture.cache == nullptr || recorder.is_suspended() || !can_run(thread, frame)) {
    return evaluate_natively(thread, frame, throwing);
  }
  const bool is_generator =
      frame->owner == FRAME_OWNED_BY_GENERATOR || (frame->f_code->co_flags & CO_GENERATOR) != 0;
  const bool takes_segments = !is_generator && !is_library_code(frame->f_code);
  if (!recorder.is_recording() && !takes_segments) {
    return evaluate_natively(thread, frame, throwing);
  }
  FrameDriver driver(capture, takes_segments);
  PyObject* result = run(thread, frame, throwing != 0, recorder, &driver);
  return result;
}

}  // namespace

CaptureScope::CaptureScope(std::shared_ptr<SegmentCache> cache)
    : saved_(std::move(this_thread().cache)), has_hook_(cache != nullptr) {
  this_thread().cache = std::move(cache);
  if (has_hook_) install_hook(evaluate);
}

CaptureScope::~CaptureScope() {
  if (has_hook_) uninstall_hook();
  ThreadCapture& capture = this_thread();
  capture.cache = std::move(saved_);
}

const CaptureRecord* record_being_compiled() { return this_thread().compiling; }

bool is_capturing() { return this_thread().recorder.is_recording(); }

bool request_break(const char* reason) {
  Recorder& recorder = this_thread().recorder;
  if (!recorder.is_recording()) return true;
  return recorder.stop(*current_activation(), reason);
}

void set_unsupported_class(PyObject* type) {
  Py_INCREF(type);
  unsupported_class() = type;
}

void Recorder::entered(Activation& a) {
  if (is_recording() && &a != root_) enter(a);
}

void Recorder::leaving(Activation& a) {
  if (!is_recording()) return;
  if (&a != root_) {
    leave(a);
    return;
  }
  // The root raised, and its stack is gone: there is nothing to describe. The next call tries
  // again.
  abandon();
}

}  // namespace assay::capture
