/// \file Records of frames whose capture fails (setting `replay_record_enabled`): what a frame is
/// given is written down when it starts, and kept on disk if its capture fails. The Python half,
/// which knows how, is assay._replay. Called by the driver.
#pragma once

#include "capture/cpython_311.h"
#include "capture/ref.h"
#include "capture/segment_cache.h"

namespace assay::capture {

/// The two functions of assay._replay: `take(function, args, kwargs)` and
/// `keep(taken, error, backend, options, fullgraph)`.
void set_frame_recorder(PyObject* take, PyObject* keep);

/// A frame that is about to start, by value. Null if records are not wanted.
Ref take_frame(const _PyInterpreterFrame* frame);

/// A Python exception is set: the capture of a frame failed. Writes what was `taken` of it, and
/// notes on the exception where. It stays set.
void keep_frame(const Ref& taken, const CaptureSettings& settings);

}  // namespace assay::capture
