/// \file What the loop owes a profiler that was switched on while it executed a frame.
#pragma once

#include "capture/activation.h"

namespace assay::capture {

/// Reports that the frame is left by the exception that is set.
void report_unwound(Activation& a);

}  // namespace assay::capture
