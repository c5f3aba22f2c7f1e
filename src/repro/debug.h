/// \file Compiles with the debug wrapper (repro/with_debug_wrapper.h) that the settings ask for.
/// What the front ends call.
#pragma once

#include <memory>

#include "assay/backend.h"

namespace assay::repro {

/// Compiles as assay::compile_graph does, and watches as current_debug_config() says. Throws what
/// the backend throws; at level 4 a call whose results are not eager's throws `AccuracyError`.
/// The backend need not be registered.
std::shared_ptr<const CompiledGraph> compile_with_debug(const Backend& backend,
                                                        CompileRequest request);

}  // namespace assay::repro
