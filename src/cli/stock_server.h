/// \file A compiler in a Python process as the one under test, stock PyTorch's or the user's own:
/// its trial server, and what a file says for it.
#pragma once

#include <filesystem>
#include <string>

#include "repro/repro_file.h"
#include "sandbox/server.h"

namespace assay::cli {

/// The Python for stock PyTorch: the setting `python`, else that of the active environment, else
/// python3 on the PATH.
std::string find_python();

/// Starts `python -m assay.stock_server`. Inductor's cache is below `directory`. A backend
/// of the user's is called `module:name`, or is in `backend_file`.
sandbox::StartServer start_stock_server(const std::filesystem::path& directory,
                                        const std::string& backend,
                                        const std::filesystem::path& backend_file);

/// Hands over the file's configuration: its recognised settings, and with `trust` also its lines of
/// Python before the graph.
void add_stock_settings(const repro::ReproFile& file, bool trust, sandbox::Trial& trial);

}  // namespace assay::cli
