/// \file Are the results of a compiled graph those of eager? For level 4 of repro/debug.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/models.h"
#include "repro/accuracy_error.h"
#include "repro/config.h"

namespace assay::repro {

/// Runs both on copies of the inputs, with the same random numbers, and eager in float64 too. What
/// differs, in one sentence; nothing if all is well. Throws what the compiled graph throws.
std::optional<std::string> find_difference(const graph::Graph& graph,
                                           const compare::Callable& compiled,
                                           const std::vector<aten::Value>& inputs,
                                           const DebugConfig& config, bool forward_only);

}  // namespace assay::repro
