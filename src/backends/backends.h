/// \file What our own backends share. The table of them, with their names, is backends/table.cpp.
#pragma once

#include <memory>
#include <vector>

#include "assay/backend.h"

namespace assay::backends {

/// The table: every backend of ours, in the order in which the guide tries them.
std::vector<Backend> own_backends();

using CompiledPointer = std::shared_ptr<const CompiledGraph>;

/// Runs the captured graph operator by operator (eager.cpp); several backends end there.
CompiledPointer compile_eager(const CompileRequest& request);

}  // namespace assay::backends
