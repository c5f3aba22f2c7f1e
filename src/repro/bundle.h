/// \file A repro file that carries its inputs' data in itself, to be sent as one attachment.
///
/// The contents stand in base64 in a dict at the top; for stock PyTorch a function beside it writes
/// them to a temporary directory, which it gives to run_repro. Our own reader decodes the dict.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "repro/repro_file.h"

namespace assay::repro {

/// The name of the dict, and the call that stands for `save_dir`.
inline constexpr std::string_view kInlinedStorages = "storages";
inline constexpr std::string_view kUnpackCall = "unpack(storages)";

/// Puts the contents of all storages that are found into the file. Throws `UserError` if a storage
/// is missing, or if the file would be larger than can be read back.
void inline_storages(ReproFile& file);

/// The text of such a file for the file at `path`.
std::string bundle(const std::filesystem::path& path);

/// The dict and the function `unpack`, as Python text.
std::string print_inlined_storages(const std::map<std::string, std::string, std::less<>>& storages);

std::string to_base64(std::string_view bytes);
/// Nothing if the text is not base64. Blanks and line ends are skipped.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace assay::repro
