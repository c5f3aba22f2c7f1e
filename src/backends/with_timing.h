/// \file The decorator that times the compilation of a captured graph and logs its size.
#pragma once

#include "assay/compiler.h"

namespace assay::backends {

Compiler with_timing(Compiler compiler);

}  // namespace assay::backends
