/// \file What `assay run` prints: results for a person or a script, or the failure.
#pragma once

#include <string>
#include <vector>

#include "assay/stage.h"
#include "aten/failure.h"
#include "aten/value.h"
#include "cli/commands.h"
#include "kernels/profile.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"

namespace assay::cli {

/// What the runs of a file gave.
struct RunOutcome {
  aten::Value results;
  std::vector<double> seconds;
  /// With --backward: one per input that has a gradient, by the input's name.
  std::vector<std::pair<std::string, at::Tensor>> gradients;
  std::vector<kernels::ProfiledStep> profile;  ///< With --profile.
};

void print_success(const RunCommand& command, const repro::ReproFile& file,
                   const repro::Inputs& inputs, const RunOutcome& outcome);
void print_failure(const RunCommand& command, const repro::ReproFile& file,
                   const repro::Inputs& inputs, Stage stage, const aten::FailureDetail& failure);

}  // namespace assay::cli
