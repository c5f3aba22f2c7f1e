/// \file Which backend a command uses for a file.
#pragma once

#include <filesystem>
#include <string>

#include "repro/repro_file.h"

namespace assay::cli {

/// Throws `UserError` unless exactly one of them says which backend of Python's is meant.
void check_python_backend(const std::string& backend, const std::filesystem::path& file);

/// What the user asked for, else what the file names, else the stack's usual one: native, or
/// inductor for torch. Throws `UserError` if Assay's stack has no such backend.
std::string choose_backend(const std::string& wanted, const repro::ReproFile& file,
                           const std::string& stack);

/// The same for a command with `backend`, `stack` and `backend_file`, of which it may leave out
/// some: a backend `module:name` and one in a file are Python's.
template <typename Command>
void choose_backend(Command& command, const repro::ReproFile& file) {
  const bool is_file = !command.backend_file.empty();
  if (is_file || command.backend.find(':') != std::string::npos) command.stack = "python";
  if (command.stack == "python") check_python_backend(command.backend, command.backend_file);
  if (is_file) command.backend = command.backend_file.stem().string();
  command.backend = choose_backend(command.backend, file, command.stack);
}

/// Whether trials run in a Python process.
inline bool is_python_stack(const std::string& stack) { return stack != "assay"; }

}  // namespace assay::cli
