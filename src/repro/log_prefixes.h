/// \file Graphs copied from PyTorch's log: every line begins with the time, the place and the name
/// of the log. Called by repro/repro_file.cpp before the text is parsed.
#pragma once

#include <string>

namespace assay::repro {

/// Removes the prefixes of TORCH_LOGS from the lines of a text, and what stands before `class` on a
/// graph's first line. A text without such lines stays as it is. Lines keep their numbers; those
/// that the log adds around a graph become empty.
void strip_log_prefixes(std::string& text);

}  // namespace assay::repro
