/// \file What the ahead-of-time backends share.
#pragma once

#include "autograd/aot.h"
#include "backends/registry.h"

namespace assay::backends {

/// Traces the subject's graph and compiles its halves as `options` say.
Callable compile_ahead_of_time(const Subject& subject, const autograd::AotOptions& options);

}  // namespace assay::backends
