/// \file Reads a graph from the text form: the Python class that graph/print.h, FX and stock
/// PyTorch's repro files contain. Python is never executed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/python_parser.h"

namespace assay::graph {

/// Parses a text whose main class is the one `mod = Name()` instantiates, else the class `Repro`,
/// else the last `torch.nn.Module` class. Throws `UserError` with the place.
std::unique_ptr<Graph> parse(const std::string& text, const std::string& file = "<text>");

/// The same for a file already read into syntax; for readers of whole repro files.
std::unique_ptr<Graph> parse(const python::Source& source, const python::Module& module);

/// The constant an expression spells (numbers, strings, dtypes, lists of them, ...). Throws
/// `UserError` if it is anything else.
Argument constant_from_syntax(const python::Source& source, const python::Expression& expression);

}  // namespace assay::graph
