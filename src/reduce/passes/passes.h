/// \file What a file of a pass includes: the declaration of each pass, made from the table in
/// passes.def, and the tools for making proposals.
#pragma once

#include "reduce/edit.h"
#include "reduce/pass.h"

namespace assay::reduce::passes {

#define PASS(name, needs, description) Proposals name();
#include "reduce/passes/passes.def"
#undef PASS

}  // namespace assay::reduce::passes
