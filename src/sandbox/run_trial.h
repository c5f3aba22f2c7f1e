/// \file What the process of a trial does: loads, runs eagerly, compiles, runs, compares.
#pragma once

#include "sandbox/trial.h"

namespace assay::sandbox {

/// Called by a server before its first trial: makes what every process would make again, on this
/// one thread.
void prepare_for_trials();

/// Carries out a trial in this process and reports through the pipe. Never throws.
void run_trial(const Trial& trial, int report_pipe) noexcept;

}  // namespace assay::sandbox
