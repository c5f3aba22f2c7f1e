/// \file Stock PyTorch as the compiler under test: its trial server, and what a file says for it.
#pragma once

#include <filesystem>
#include <string>

#include "repro/repro_file.h"
#include "sandbox/server.h"

namespace assay::cli {

/// Starts `python -m assay.stock_server`. The python is the setting `python`, else that of the
/// active environment, else python3 on the PATH. Inductor's cache is below `directory`.
sandbox::StartServer start_stock_server(const std::filesystem::path& directory,
                                        const std::string& backend);

/// Hands over the file's configuration: its recognised settings, and with `trust` also its lines of
/// Python before the graph.
void add_stock_settings(const repro::ReproFile& file, bool trust, sandbox::Trial& trial);

}  // namespace assay::cli
