/// \file Gives the graph of a segment to the backend. Called when a segment has ended
/// (finish_segment.cpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capture/fixed_parts.h"
#include "capture/segment.h"
#include "capture/segment_cache.h"

namespace assay::capture {

struct CompiledSegment {
  std::shared_ptr<const CompiledGraph> compiled;
  /// Why it is run by backend eager instead; empty if it is not.
  std::string eager_reason;
};

/// Compiles the graph for inputs of these sizes. Throws what the backend throws. The GIL is held.
CompiledSegment compile_graph(const Segment& segment, const CaptureSettings& settings,
                              std::vector<c10::IValue> example_inputs);

/// The graph in pieces, of which those that do not depend on open sizes are compiled; null if that
/// is not worth it, or if the backend does not compile halves.
std::shared_ptr<const CompiledGraph> compile_fixed_parts(const Segment& segment,
                                                         const CaptureSettings& settings,
                                                         const FixedParts& parts);

/// Sets `segment.compiled`. `example_inputs` are those of the recording. Throws what the backend
/// throws; while the debug wrapper is on, also what the compiled graph throws in a trial run.
/// Returns why the graph is run by backend eager instead; empty if it is not. The GIL is held.
std::string compile_segment(Segment& segment, const CaptureSettings& settings,
                            std::vector<c10::IValue> example_inputs);

}  // namespace assay::capture
