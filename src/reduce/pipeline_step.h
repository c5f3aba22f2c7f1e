/// \file Which step of the kernels' pipeline (docs/kernels.md) makes a program fail? What the
/// driver asks about the result, by trials with steps switched off.
#pragma once

#include <string>

#include "reduce/judge.h"

namespace assay::reduce {

/// The last step without which the program `text` does not fail as is looked for: steps before it
/// may only make the rewrite that is wrong. The step that makes loops of operators, if it fails
/// without all others. Empty if the backend has no such pipeline.
std::string find_pipeline_step(const std::string& text, Judge& judge);

}  // namespace assay::reduce
