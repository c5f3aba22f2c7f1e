/// \file What one thread captures: its recorder, the function it captures for, and what becomes of
/// a segment that has ended (finish_segment.cpp). Used by the driver.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/recorder.h"
#include "capture/ref.h"
#include "capture/segment_cache.h"

namespace assay::capture {

/// A compiled graph raised, and the loop runs its segment for eager's state and traceback. If that
/// comes to the segment's end without an exception, the backend is at fault, and this is raised.
struct PendingError {
  Ref error;  ///< Null: there is none.
  const _PyInterpreterFrame* frame = nullptr;
  int end = 0;
  bool returns = false;  ///< The segment ends with the frame.
};

class ThreadCapture : public SegmentSink {
 public:
  ThreadCapture() : recorder(*this) {}

  bool finished(Activation& root, int start, std::unique_ptr<Segment> segment,
                std::vector<c10::IValue> example_inputs) override;
  bool allows_no_break() const override { return cache != nullptr && cache->settings.fullgraph; }
  bool compiles_ahead_of_time() const override {
    return cache != nullptr && cache->settings.backend->compiles_halves;
  }

  Recorder recorder;
  std::shared_ptr<SegmentCache> cache;
  std::string recompile_reason;
  bool is_for_other_size = false;  ///< What is being recorded; see Segment.
  /// With the setting `paranoid`: a segment whose guards hold, recorded once more beside it.
  const Segment* expected = nullptr;
  const CaptureRecord* compiling = nullptr;
  PendingError pending;
  /// A break that `fullgraph` does not allow was raised. A handler of the program may have caught
  /// it, but the call does not end well.
  Ref unsupported;
  /// A frame met more sizes than may be compiled: it and what it calls run eagerly where no segment
  /// fits.
  bool replays_only = false;
  /// What was taken of the frames that are executed (frame_record.h), the innermost last.
  struct TakenFrame {
    const _PyInterpreterFrame* frame;
    Ref taken;
  };
  std::vector<TakenFrame> taken_frames;

 private:
  Ref taken_of(const _PyInterpreterFrame* frame) const;
  bool compile(Activation& root, Segment& segment, std::vector<c10::IValue> example_inputs,
               CaptureRecord& record);
};

ThreadCapture& this_thread();

}  // namespace assay::capture
