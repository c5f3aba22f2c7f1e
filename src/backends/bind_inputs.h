/// \file For compilers that do not bind inputs themselves: what they compile is given the bound
/// inputs at every call.
#pragma once

#include "assay/compiler.h"

namespace assay::backends {

Compiler bind_inputs(Compiler compiler);

}  // namespace assay::backends
