/// \file The decorator that logs the steps of the troubleshooting guide: the last step that was
/// begun and not done is at fault.
#pragma once

#include "assay/compiler.h"

namespace assay::backends {

Compiler with_steps(Compiler compiler);

}  // namespace assay::backends
