/// \file What `assay run` prints: results for a person or a script, or the failure.
#pragma once

#include <string>
#include <vector>

#include "aten/value.h"
#include "cli/commands.h"
#include "graph/meta.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"

namespace assay::cli {

/// What the runs of a file gave.
struct RunOutcome {
  aten::Value results;
  std::vector<double> seconds;
  /// With --backward: one per input that has a gradient, by the input's name.
  std::vector<std::pair<std::string, at::Tensor>> gradients;
};

/// The failure of a backend or of an operator it ran.
struct RunFailure {
  std::string phase;  ///< `compile`, `run` or `backward`
  std::string text;   ///< The whole message, for a person.
  std::string message;
  std::string node;  ///< Empty where no node is to blame; so are `call` and `stack`.
  std::string call;
  std::vector<graph::StackFrame> stack;
};

void print_success(const RunCommand& command, const repro::ReproFile& file,
                   const repro::Inputs& inputs, const RunOutcome& outcome);
void print_failure(const RunCommand& command, const repro::ReproFile& file,
                   const repro::Inputs& inputs, const RunFailure& failure);

}  // namespace assay::cli
