/// \file Which backend a command uses for a file.
#pragma once

#include <string>

#include "repro/repro_file.h"

namespace assay::cli {

/// What the user asked for, else what the file names, else the stack's usual one: aot_eager, or
/// inductor for torch. Throws `UserError` if Assay's stack has no such backend.
std::string choose_backend(const std::string& wanted, const repro::ReproFile& file,
                           const std::string& stack);

}  // namespace assay::cli
