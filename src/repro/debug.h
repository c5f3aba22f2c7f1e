/// \file The debug wrapper around every compiler: sees it fail, writes down what it was given
/// (repro/dump.h), and lets the failure go on as it was. PyTorch's `wrap_backend_debug` and
/// `wrap_compiler_debug`.
#pragma once

#include <string>
#include <string_view>

#include "autograd/program.h"
#include "backends/registry.h"
#include "repro/config.h"

namespace assay::repro {

/// Compiles as backends::compile does, and watches as current_debug_config() says: after dynamo
/// the whole backend, after aot the compiler of each half. Throws what the backend throws; at
/// level 4 a call whose results are not eager's throws `AccuracyError`.
backends::Callable compile_with_debug(std::string_view backend, const backends::Subject& subject);

/// After dynamo. The first call that has gradients is first tried on copies of its inputs, forward
/// and backward, so that a fault in backward is seen while the inputs are still there.
backends::Callable compile_captured_with_debug(const DebugConfig& config, std::string_view backend,
                                               const backends::Subject& subject);

/// After aot. What a compiler refuses before it has been given inputs is written with their shapes
/// only.
autograd::GraphCompiler watch_compiler(const DebugConfig& config, std::string backend,
                                       autograd::GraphCompiler compiler);

}  // namespace assay::repro
