/// \file What the process of a trial does: loads, runs eagerly, compiles, runs, compares.
#pragma once

#include <filesystem>
#include <string>

#include "sandbox/trial.h"

namespace assay::sandbox {

/// Carries out a trial in this process and reports through the pipe. Never throws.
void run_trial(const Trial& trial, int report_pipe) noexcept;

/// Becomes the shell command, with the file's name as its last argument.
[[noreturn]] void run_command(const std::string& command, const std::filesystem::path& file,
                              int report_pipe);

}  // namespace assay::sandbox
