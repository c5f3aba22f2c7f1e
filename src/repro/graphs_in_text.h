/// \file Graphs in a text that is not Python: an issue, a log, a blog post, a string of generated
/// code. Called by repro/repro_file.cpp for a file that cannot be read as Python.
#pragma once

#include <string>
#include <vector>

namespace assay::repro {

/// The parts of `text` that may be programs, each in a text of its own in which everything else is
/// blank, so that lines keep their numbers. First what stands between ``` fences, the last one
/// first; then the classes, forward() functions and inputs of the whole text, wherever they stand.
std::vector<std::string> graphs_in_text(const std::string& text);

}  // namespace assay::repro
