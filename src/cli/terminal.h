/// \file Text for a person: colours on a terminal only, sizes and times in readable units, tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::cli {

/// For standard output: coloured if it is a terminal and NO_COLOR is not set.
std::string bold(const std::string& text);
std::string dim(const std::string& text);
/// For standard error, likewise.
std::string red(const std::string& text);

/// `1 input`, `2 inputs`
std::string counted(std::size_t count, const char* thing);

/// `400 B`, `1.5 KiB`, `2.0 GiB`
std::string human_bytes(std::uint64_t bytes);
/// `12.3 us`, `4.56 ms`, `1.20 s`
std::string human_seconds(double seconds);

/// Rows with columns padded to equal width, two spaces between them; `right` lists the columns
/// (from 0) to align right.
std::string table(const std::vector<std::vector<std::string>>& rows,
                  const std::vector<std::size_t>& right = {});

}  // namespace assay::cli
