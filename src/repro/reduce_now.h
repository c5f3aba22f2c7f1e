/// \file Starts the reducer on a file that was just written: the `assay` command, as a child
/// process, since the failure may well be a crash.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "assay/compiler.h"
#include "repro/config.h"

namespace assay::repro {

/// ASSAY_BINARY, else `../bin/assay` beside libassay, else the first `assay` on the PATH.
std::optional<std::filesystem::path> find_assay_command();

/// Runs `assay reduce LAUNCHER` with that backend, its progress on stderr, and writes what it found
/// as `repro.py` in the current directory. If there is no command, or it fails, that is a warning;
/// the launcher stays.
void reduce_now(const DebugConfig& config, const std::filesystem::path& launcher,
                const SentBackend& backend, bool accuracy);

}  // namespace assay::repro
