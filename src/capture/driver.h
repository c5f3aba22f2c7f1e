/// \file Drives frames: decides for every Python frame inside a compiled function whether our loop
/// takes it, replays the segments that fit, and records new ones. Called by the compiled function
/// (function.cpp) and, through the hook, for every frame.
#pragma once

#include <memory>

#include "capture/segment_cache.h"

namespace assay::capture {

/// While it lives, Python frames of this thread are captured into `cache`. Null: they are not, as
/// in a function that is marked to run eagerly.
class CaptureScope {
 public:
  explicit CaptureScope(std::shared_ptr<SegmentCache> cache);
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  std::shared_ptr<SegmentCache> saved_;
  bool has_hook_;
};

/// Throws `UserError` if the environment has a bad value for a setting that frames are driven by.
/// It is read once, and while a frame runs nothing may throw.
void check_settings();

/// True while this thread records: what assay.is_compiling() says outside of captured code too.
bool is_capturing();

/// What a compiled function gives: `result`, or null with an exception set; but what the program
/// caught of a break that is not allowed is raised.
PyObject* raise_unsupported_again(PyObject* result);

/// Ends the segment that this thread records, if it does: assay.graph_break().
bool request_break(const char* reason);

/// What is given to a backend on this thread; null if nothing is.
const CaptureRecord* record_being_compiled();

}  // namespace assay::capture
