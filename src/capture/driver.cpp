#include "capture/driver.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "capture/code_facts.h"
#include "capture/frame_record.h"
#include "capture/hook.h"
#include "capture/listener.h"
#include "capture/loop.h"
#include "capture/raised.h"
#include "capture/stance.h"
#include "capture/thread_capture.h"
#include "capture/trace_log.h"
#include "config/config.h"
#include "guards/cache_limits.h"
#include "observe/observe.h"
#include "opcode.h"

namespace assay::capture {

namespace {

// Recordings without an operator, after which an instruction is no longer tried; and recordings
// that raised, after which it is tried less and less often.
constexpr int kEmptyRecordings = 3;

// Whether the setting `debug_function` leaves a function to be captured.
bool is_wanted(PyCodeObject* code) {
  const std::string wanted = config::get<"debug_function">();
  return wanted.empty() || PyUnicode_CompareWithASCIIString(code->co_name, wanted.c_str()) == 0;
}

// Modes see every call of a tensor function, and may do anything then: what runs under one is not
// captured. Nor is what runs inside a transform of torch.func, on its wrapped tensors, or in a
// __torch_dispatch__, below autograd, or where tensors have tangents (torch.autograd.forward_ad).
bool is_under_modes() {
  using Functions = at::impl::PythonTorchFunctionTLS;
  return Functions::stack_len() > 0 || c10::impl::TorchDispatchModeTLS::stack_len() > 0 ||
         Functions::get_disabled_state() != at::impl::TorchFunctionDisabledState::ENABLED ||
         at::functorch::maybeCurrentDynamicLayer().has_value() ||
         torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr ||
         c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Functionalize);
}

// Watches the instruction boundaries of one frame.
class FrameDriver : public Boundary {
 public:
  FrameDriver(ThreadCapture& capture, bool takes_segments)
      : capture_(capture), takes_segments_(takes_segments) {}
  ~FrameDriver() override {
    if (ends_replay_only_) capture_.replays_only = false;
  }
  FrameDriver(const FrameDriver&) = delete;
  FrameDriver& operator=(const FrameDriver&) = delete;

  Step at_instruction(Activation& a) override {
    if (capture_.pending.error && raises_pending(a)) return Step::raised;
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
  // A compiled graph raised, and eager has got to the end of its segment without that.
  bool raises_pending(const Activation& a) {
    PendingError& pending = capture_.pending;
    const int opcode = instruction_at(a.code, a.instruction).opcode;
    if (opcode == PUSH_EXC_INFO) {  // eager raises here too
      pending = {};
      return false;
    }
    const bool is_end = pending.returns ? opcode == RETURN_VALUE : a.instruction == pending.end;
    if (a.frame != pending.frame || !is_end) return false;
    const Ref error = std::exchange(pending, {}).error;
    if (config::get<"suppress_errors">()) {
      log_suppressed(error, line_of(a.code, a.instruction));
      return false;
    }
    add_note(error, "Raised by what backend '" + capture_.cache->settings.backend->name +
                        "' compiled. Eager does not raise it.");
    set_raised(error);
    return true;
  }

  Step start(Activation& a) {
    if (is_under_modes()) return Step::execute;
    if (capture_.unsupported) return Step::execute;  // handlers of the program, on the way out
    // Which call meets the recursion limit decides what is raised: Python makes all of them itself.
    constexpr int kFewCalls = 32;
    if (a.thread->recursion_remaining < kFewCalls) return Step::execute;
    const guards::GlobalState state = guards::GlobalState::current();
    std::vector<std::shared_ptr<const Segment>> misfits;
    while (true) {
      SegmentStart& at = capture_.cache->of(a.code).starts[a.instruction];
      if (is_plain_ && at.segments.empty()) return Step::execute;
      is_plain_ = false;
      GuardValues values;
      const std::shared_ptr<const Segment> segment = find_segment(a, at, state, values, misfits);
      if (segment == nullptr) break;
      if (config::get<"paranoid">() && segment->sizes == nullptr) {
        capture_.expected = segment.get();
        capture_.recorder.begin(a);
        return Step::execute;
      }
      if (const auto step = replay(a, *segment, values)) return *step;
      misfits.push_back(segment);
    }
    SegmentCache::Code& code = capture_.cache->of(a.code);
    SegmentStart& at = code.starts[a.instruction];
    if (at.breaks_at_once) return Step::execute;
    const bool raises = at.raised >= kEmptyRecordings && !std::has_single_bit(++at.since_then);
    if (raises || at.empty >= kEmptyRecordings) return run_plainly(code);
    return record(a, code, at, state);
  }

  // The segment whose guards hold, which becomes the first one; null if there is none but those in
  // `misfits`.
  static std::shared_ptr<const Segment> find_segment(
      const Activation& a, SegmentStart& at, const guards::GlobalState& state, GuardValues& values,
      const std::vector<std::shared_ptr<const Segment>>& misfits) {
    for (auto segment = at.segments.begin(); segment != at.segments.end(); ++segment) {
      if (std::ranges::find(misfits, *segment) != misfits.end()) continue;
      if (!(*segment)->guards->hold(a, state, values) ||
          !(*segment)->shares_memory_as_before(values)) {
        continue;
      }
      std::rotate(at.segments.begin(), segment, segment + 1);
      return at.segments.front();
    }
    return nullptr;
  }

  // Executes the rest of the frame without recording; CPython does if there is nothing to replay.
  Step run_plainly(const SegmentCache::Code& code) {
    is_plain_ = true;
    const bool has_segments = std::ranges::any_of(
        code.starts, [](const auto& start) { return !start.second.segments.empty(); });
    return has_segments ? Step::execute : Step::hand_over;
  }

  // Executes the frame without recording; CPython does if nothing is to be replayed further on.
  Step run_known_segments(const Activation& a, const SegmentCache::Code& code) {
    is_plain_ = true;
    const bool has_more = std::ranges::any_of(code.starts, [&](const auto& other) {
      return other.first > a.instruction && !other.second.segments.empty();
    });
    return has_more ? Step::execute : Step::hand_over;
  }

  // Until this frame ends, nothing is recorded, in the functions that it calls either.
  void replay_only() { ends_replay_only_ = !std::exchange(capture_.replays_only, true); }

  // Nothing if the segment does not fit the sizes of its inputs.
  std::optional<Step> replay(Activation& a, const Segment& segment, const GuardValues& values) {
    // What a backend's function calls is not captured again.
    std::shared_ptr<SegmentCache> kept = std::move(capture_.cache);
    const Segment::Replay done = segment.replay(a, values);
    capture_.cache = std::move(kept);
    if (done == Segment::Replay::misfits) return std::nullopt;
    ++capture_.cache->replays;
    if (done == Segment::Replay::done) {
      if (segment.result >= 0) return Step::returned;
      skip_at_ = segment.end;
      return Step::moved;
    }
    // The graph raised: nothing has been changed, so the loop runs this part for the exact state
    // and traceback. Where inputs were mutated, that would be done twice. Ctrl-C and exit() are
    // not failures.
    if (done == Segment::Replay::raised_midway || PyErr_ExceptionMatches(PyExc_Exception) == 0) {
      return Step::raised;
    }
    capture_.pending = {take_raised(), a.frame, segment.end, segment.result >= 0};
    is_plain_ = true;
    return Step::execute;
  }

  std::optional<std::string> reached_limit(const SegmentStart& at, bool is_for_other_size) const {
    const auto for_other_sizes = std::ranges::count_if(
        at.segments, [](const auto& segment) { return segment->is_for_other_size; });
    return guards::reached_limit(
        {at.segments.size(), static_cast<std::size_t>(for_other_sizes), is_for_other_size},
        capture_.cache->settings.cache_limit);
  }

  Step record(Activation& a, SegmentCache::Code& code, SegmentStart& at,
              const guards::GlobalState& state) {
    if (!is_wanted(a.code)) return Step::hand_over;
    if (capture_.replays_only || stance() == Stance::eager_on_recompile)
      return run_known_segments(a, code);
    if (stance() == Stance::fail_on_recompile) {
      const std::string reason = at.segments.empty()
                                     ? "nothing is compiled for it"
                                     : at.segments.front()->guards->failure(a, state).text;
      const CodeLine place = line_of(a.code, a.instruction);
      PyErr_Format(PyExc_RuntimeError,
                   "Detected recompile of '%s' (%s:%d) when the stance is 'fail_on_recompile': %s",
                   place.function.c_str(), place.file.c_str(), place.line, reason.c_str());
      return Step::raised;
    }
    capture_.recompile_reason.clear();
    capture_.is_for_other_size = false;
    if (!at.segments.empty()) {
      const GuardFailure failure = at.segments.front()->guards->failure(a, state);
      const std::string& reason = failure.text;
      const CodeLine place = line_of(a.code, a.instruction);
      observe::artifact(observe::Artifact::recompiles, [&] {
        return "Recompiling function " + place.function + " in " + place.file + ":" +
               std::to_string(place.line) + "\n    triggered by: " + reason;
      });
      observe::artifact(observe::Artifact::recompiles_verbose, [&] {
        std::string text = "Recompiling function " + place.function + " in " + place.file + ":" +
                           std::to_string(place.line) + "\n    none of these fits:";
        for (std::size_t i = 0; i < at.segments.size(); ++i) {
          text +=
              "\n    " + std::to_string(i) + ": " + at.segments[i]->guards->failure(a, state).text;
        }
        return text;
      });
      bool is_for_other_size = false;
      for (const auto& segment : at.segments) {
        using Besides = SegmentGuards::Besides;
        if (!segment->guards->hold_but_for(Besides::sizes_and_numbers, a, state)) continue;
        segment->guards->add_others(a, at.open);
        is_for_other_size =
            is_for_other_size || segment->guards->hold_but_for(Besides::sizes, a, state);
      }
      const auto limit = reached_limit(at, is_for_other_size);
      if (!may_recompile(to_string(a.code->co_name), reason, limit.has_value(),
                         capture_.cache->settings.fullgraph)) {
        return Step::raised;
      }
      if (limit) {
        if (!at.has_warned) {
          at.has_warned = true;
          observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
            return "hit " + *limit + "\n   function: '" + place.function + "' (" + place.file +
                   ":" + std::to_string(place.line) + ")\n   last reason: " + reason +
                   "\n   calls that fit none of the compiled segments run eagerly from now on";
          });
        }
        // The functions that it calls would meet the same tensors, one compilation each.
        if (failure.is_tensor) replay_only();
        return run_known_segments(a, code);
      }
      capture_.recompile_reason = reason;
      capture_.is_for_other_size = is_for_other_size;
    }
    capture_.expected = nullptr;
    if (code.starts.size() == 1 && at.segments.empty() && at.empty + at.raised == 0) {
      log_bytecode(a.code);
    }
    log_step("start tracing", line_of(a.code, a.instruction));
    capture_.recorder.begin(a, open_sources(at), capture_.cache->settings.dynamic.value_or(false));
    log_instruction(a);
    return Step::execute;
  }

  // Which sizes and numbers the next recording leaves open.
  OpenSources open_sources(const SegmentStart& at) const {
    constexpr auto kMostSized = 3;  // segments that no other size has fitted
    const std::optional<bool>& dynamic = capture_.cache->settings.dynamic;
    if (!dynamic.value_or(config::get<"automatic_dynamic_shapes">())) return {};
    const auto failed = std::ranges::count_if(at.segments, [](const auto& segment) {
      return segment->sizes != nullptr && segment->sizes->gave_up();
    });
    return failed >= kMostSized ? OpenSources() : at.open;
  }

  ThreadCapture& capture_;
  bool takes_segments_;
  bool ends_replay_only_ = false;
  bool is_plain_ = false;  // executing without recording, up to the next known segment
  int skip_at_ = -1;       // the instruction that ended the segment just replayed
};

PyObject* evaluate(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  ThreadCapture& capture = this_thread();
  Recorder& recorder = capture.recorder;
  if (capture.cache == nullptr || recorder.is_suspended() || !can_run(thread, frame)) {
    return evaluate_natively(thread, frame, throwing);
  }
  if (recorder.is_recording() && recorder.runs_natively(*frame)) {
    return evaluate_natively(thread, frame, throwing);
  }
  const bool is_generator =
      frame->owner == FRAME_OWNED_BY_GENERATOR || (frame->f_code->co_flags & CO_GENERATOR) != 0;
  const bool takes_segments =
      !is_generator && (!is_library_code(frame->f_code) || is_code_of_optimizers(frame->f_code));
  if (!recorder.is_recording() && !takes_segments) {
    return evaluate_natively(thread, frame, throwing);
  }
  const bool is_root = !recorder.is_recording();
  Ref taken = is_root ? take_frame(frame) : Ref();
  if (taken) capture.taken_frames.push_back({frame, taken});
  FrameDriver driver(capture, takes_segments);
  PyObject* result = run(thread, frame, throwing != 0, recorder, &driver);
  if (taken) capture.taken_frames.pop_back();
  if (is_root && capture.pending.frame == frame) capture.pending = {};  // eager raised, too
  return result;
}

}  // namespace

ThreadCapture& this_thread() {
  static thread_local ThreadCapture* const capture = new ThreadCapture;
  return *capture;
}

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

void check_settings() {
  config::get<"accumulated_cache_size_limit">();
  config::get<"cache_size_limit">();
  config::get<"debug_function">();
  config::get<"paranoid">();
  config::get<"replay_record_enabled">();
  config::get<"suppress_errors">();
  config::get<"verbose">();
}

const CaptureRecord* record_being_compiled() { return this_thread().compiling; }

bool is_capturing() { return this_thread().recorder.is_recording(); }

bool request_break(const char* reason) {
  Recorder& recorder = this_thread().recorder;
  if (!recorder.is_recording()) return true;
  return recorder.stop(*current_activation(), reason);
}

PyObject* raise_unsupported_again(PyObject* result) {
  const Ref unsupported = std::exchange(this_thread().unsupported, Ref());
  if (!unsupported) return result;
  const Ref raised = take_raised();
  Py_CLEAR(result);
  set_raised(unsupported);
  return nullptr;
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
  // The root raised, and its stack is gone: there is nothing to describe. The next calls try again.
  if (SegmentCache* cache = this_thread().cache.get()) ++cache->of(a.code).starts[start_].raised;
  abandon();
}

}  // namespace assay::capture
