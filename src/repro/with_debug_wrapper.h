/// \file The debug wrapper as a decorator of a compiler: sees it fail, writes down what it was
/// given (repro/dump.h), and lets the failure go on as it was. PyTorch's `wrap_backend_debug` and
/// `wrap_compiler_debug`.
///
/// After dynamo it wraps the compiler of the captured graph, after aot that of each half.
#pragma once

#include <atomic>
#include <memory>

#include "assay/compiler.h"
#include "repro/config.h"

namespace assay::repro {

/// `has_wrapped` is set when the wrapper is given a graph to wrap.
Compiler with_debug_wrapper(Compiler compiler, const DebugConfig& config,
                            std::shared_ptr<std::atomic<bool>> has_wrapped);

}  // namespace assay::repro
