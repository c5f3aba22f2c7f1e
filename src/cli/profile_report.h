/// \file What `assay run --profile` adds: a table of kernels and ATen calls. Used by
/// run_report.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/profile.h"

namespace assay::cli {

/// Slowest first: time per run, share, bytes moved, GB/s, and the user's lines.
std::string profile_table(std::vector<kernels::ProfiledStep> steps);
nlohmann::json profile_json(std::vector<kernels::ProfiledStep> steps);

}  // namespace assay::cli
