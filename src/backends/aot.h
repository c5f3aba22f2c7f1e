/// \file What the ahead-of-time backends share.
#pragma once

#include "autograd/aot.h"
#include "backends/backends.h"

namespace assay::backends {

/// Traces the request's graph and compiles its halves as `options` say, with what the request's
/// context puts around their compiler.
CompiledPointer compile_ahead_of_time(const CompileRequest& request, autograd::AotOptions options);

}  // namespace assay::backends
