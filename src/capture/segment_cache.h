/// \file The segments of one compiled function: of its own code and of every function it calls that
/// became a root of its own. Kept by the compiled function (function.h), filled by the driver.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "assay/backend.h"
#include "capture/code_facts.h"
#include "capture/segment.h"

namespace assay::capture {

struct CaptureSettings {
  std::shared_ptr<const Backend> backend;
  BackendOptions options;
  /// A break is an error.
  bool fullgraph = false;
  /// How many segments may start at one instruction; by default the setting `cache_size_limit`.
  std::optional<std::size_t> cache_limit;
  /// Whether segments are to fit other sizes of their tensors: from the first on, never, or once a
  /// tensor has had two.
  std::optional<bool> dynamic = {};
  /// The backend as the user gave it: a name or a callable. For records of frames.
  Ref backend_object = {};
};

/// What one recording came to; for explain, logs and profilers. Oldest first.
struct CaptureRecord {
  std::string function;
  std::string file;
  int line = 0;
  std::shared_ptr<const graph::Graph> graph;  ///< Null if no operator was recorded.
  std::vector<std::string> guards;
  BreakReason reason;           ///< Empty if the frame returned.
  std::vector<CodeLine> stack;  ///< Of the reason: from the recorded function inward.
  std::string recompile;        ///< Why the segments before it did not fit; empty for the first.
  /// Why the graph runs with backend eager, not with the one that was asked for; empty if it
  /// runs with that one.
  std::string eager_reason = {};
};

/// The segments that start at one instruction.
struct SegmentStart {
  /// The last one used comes first. While a thread runs one, another may drop all of them.
  std::vector<std::shared_ptr<Segment>> segments;
  int empty = 0;                ///< Recordings without an operator.
  bool breaks_at_once = false;  ///< Its very instruction cannot be recorded.
  bool has_warned = false;
  OpenSources open;         ///< What was different in different calls.
  int raised = 0;           ///< Recordings in a row that ended with an exception.
  unsigned since_then = 0;  ///< Calls since these were too many.
};

class SegmentCache {
 public:
  explicit SegmentCache(CaptureSettings wanted) : settings(std::move(wanted)) {}

  struct Code {
    Ref code;
    std::map<int, SegmentStart> starts;
  };
  Code& of(PyCodeObject* code) {
    Code& found = codes_[code];
    if (!found.code) found.code = Ref::borrow(code);
    return found;
  }
  void clear() {
    codes_.clear();
    records.clear();
  }

  CaptureSettings settings;
  std::vector<CaptureRecord> records;
  std::size_t replays = 0;

 private:
  std::unordered_map<PyCodeObject*, Code> codes_;
};

}  // namespace assay::capture
