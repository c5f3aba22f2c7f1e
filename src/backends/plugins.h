/// \file Shared libraries that register backends when they are loaded (assay/backend.h). The
/// command loads them before anything else, so the trial servers it forks have them too.
#pragma once

#include <string>
#include <vector>

namespace assay::backends {

/// Loads each library. Throws `UserError` with the loader's message if one cannot be loaded, and
/// what its registration throws.
void load_plugins(const std::vector<std::string>& files);

/// The files in a list with colons between them, as in ASSAY_PLUGINS.
std::vector<std::string> split_plugins(const std::string& list);

}  // namespace assay::backends
