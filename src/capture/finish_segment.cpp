// What becomes of a segment that has ended: it is described, compiled and kept.
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "capture/code_facts.h"
#include "capture/compile_segment.h"
#include "capture/frame_record.h"
#include "capture/listener.h"
#include "capture/raised.h"
#include "capture/thread_capture.h"
#include "capture/trace_log.h"
#include "capture/unsupported.h"
#include "config/config.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::capture {

namespace {

// Each recording numbers its calls of Python (python_calls.h) anew.
std::string without_call_numbers(std::string text) {
  constexpr std::string_view name = "torch.ops.assay_python.call";
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t first = text.find('(', at) + 1;
    text.erase(first, text.find_first_not_of("0123456789", first) - first);
  }
  return text;
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
    if (without_call_numbers(text) != without_call_numbers(graph::print(*before.graph))) {
      return "the graph is another one:\n" + text;
    }
  }
  if (now.effects.size() != before.effects.size()) return "the effects are others";
  // What is no longer used may have had a value before, or none.
  const auto is_set = [](const Segment::Slot& slot) { return slot.recipe >= 0; };
  if (std::ranges::count_if(now.slots, is_set) != std::ranges::count_if(before.slots, is_set)) {
    return "other variables were set";
  }
  return "";
}

bool is_as_expected(const Segment& before, const Segment& now, const CodeLine& place) {
  const std::string what = difference(before, now);
  if (what.empty()) return true;
  PyErr_SetString(PyExc_AssertionError,
                  ("paranoid: " + what + ", although the guards of the segment hold" +
                   text_of({{place.file, place.line, place.function, ""}}))
                      .c_str());
  return false;
}

void log_graph(const Segment& segment) {
  observe::artifact(observe::Artifact::graph_code, [&] { return graph::print(*segment.graph); });
  observe::artifact(observe::Artifact::graph, [&] { return graph_table(*segment.graph); });
  observe::artifact(observe::Artifact::graph_sizes, [&] { return graph_sizes(*segment.graph); });
  if (!segment.effects.empty()) {
    observe::artifact(observe::Artifact::side_effects, [&] {
      std::string text = "SIDE EFFECTS, redone after the graph has run:";
      for (const Effect& effect : segment.effects) {
        text += "\n  " + (effect.description.empty() ? "grad mode is set" : effect.description);
      }
      return text;
    });
  }
  observe::artifact(observe::Artifact::guards, [&] {
    std::string text = "GUARDS:";
    for (const std::string& line : segment.guards->describe()) text += "\n  " + line;
    return text;
  });
}

std::string text_of(const CodeLine& place) {
  return place.function + " (" + place.file + ":" + std::to_string(place.line) + ")";
}

}  // namespace

Ref ThreadCapture::taken_of(const _PyInterpreterFrame* frame) const {
  const auto found = std::ranges::find(taken_frames, frame, &TakenFrame::frame);
  return found == taken_frames.end() ? Ref() : found->taken;
}

// False with a Python exception set if the backend failed.
bool ThreadCapture::compile(Activation& root, Segment& segment,
                            std::vector<c10::IValue> example_inputs, CaptureRecord& record) {
  const std::shared_ptr<SegmentCache> into = std::exchange(cache, nullptr);  // what the backend
  compiling = &record;                                                       // runs is not captured
  bool ok = true;
  try {
    record.eager_reason = compile_segment(segment, into->settings, std::move(example_inputs));
  } catch (pybind11::error_already_set& error) {
    error.restore();
    ok = false;
  } catch (...) {
    pybind11::detail::try_translate_exceptions();
    ok = false;
  }
  if (!ok) keep_frame(taken_of(root.frame), into->settings);
  cache = into;
  compiling = nullptr;
  return ok;
}

bool ThreadCapture::finished(Activation& root, int start, std::unique_ptr<Segment> segment,
                             std::vector<c10::IValue> example_inputs) {
  const std::shared_ptr<SegmentCache> into = cache;
  const CodeLine place = line_of(root.code, start);
  if (const Segment* before = std::exchange(expected, nullptr)) {
    return is_as_expected(*before, *segment, place);
  }
  const BreakReason& reason = segment->reason;
  const bool is_break = !reason.reason.empty() && reason.is_break;
  const std::vector<CodeLine> stack = is_break ? lines_since(root) : std::vector<CodeLine>{};
  log_step("done tracing", place);
  if (is_break) {
    observe::artifact(observe::Artifact::graph_breaks,
                      [&] { return "Graph break: " + reason.reason + text_of(stack); });
  }
  segment->is_for_other_size = is_for_other_size;
  CaptureRecord record = {
      place.function,
      place.file,
      place.line,
      segment->graph,
      segment->guards == nullptr ? std::vector<std::string>{} : segment->guards->describe(),
      reason,
      stack,
      std::exchange(recompile_reason, "")};
  const bool is_kept = segment->guards != nullptr && segment->graph != nullptr;
  if (!is_kept && (segment->graph != nullptr || is_break)) into->records.push_back(record);
  if (!tell_listener(record)) return false;
  if (is_break && into->settings.fullgraph) {
    if (is_kept) into->records.push_back(record);
    raise_unsupported(reason, config::get<"verbose">() ? whole_stack(root) : stack);
    unsupported = take_raised();
    set_raised(unsupported);
    keep_frame(taken_of(root.frame), into->settings);
    return false;
  }
  if (!is_kept) {
    SegmentStart& at = into->of(root.code).starts[start];
    ++at.empty;
    if (segment->end == start && segment->result < 0) at.breaks_at_once = true;
    return true;
  }
  log_graph(*segment);
  const bool is_compiled = compile(root, *segment, std::move(example_inputs), record);
  if (!record.eager_reason.empty()) {
    observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
      return "the graph of " + text_of(place) + " runs with backend eager, not " +
             into->settings.backend->name + ": " + record.eager_reason;
    });
  }
  into->records.push_back(std::move(record));
  SegmentStart& at = into->of(root.code).starts[start];  // not before: a backend may call reset()
  if (is_compiled) {
    at.raised = 0;
    at.segments.insert(at.segments.begin(), std::move(segment));
    return true;
  }
  // Ctrl-C and exit() are not failures of the backend.
  if (!config::get<"suppress_errors">() || PyErr_ExceptionMatches(PyExc_Exception) == 0) {
    return false;
  }
  ++at.empty;
  log_suppressed(take_raised(), place);
  return true;
}

}  // namespace assay::capture
