/// \file The constants a file defines at its top: `bs = 128`, `dtype = torch.float16`,
/// `n = int(os.getenv('N', 4))`. Used by graph/parse.h for names in a graph, and by the repro room
/// for names in the sizes of inputs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "graph/argument.h"
#include "graph/python_parser.h"

namespace assay::graph {

using ModuleConstants = std::map<std::string, Argument, std::less<>>;

/// The value of an expression of literals, known constants and arithmetic; nothing if it is
/// anything else. The environment is never read: `os.getenv('N', 4)` is its default.
std::optional<Argument> fold_constant(const python::Source& source,
                                      const python::Expression& expression,
                                      const ModuleConstants& known);

/// The constants that the statements assign, the last value of each.
ModuleConstants module_constants(const python::Source& source, const python::Module& module);

}  // namespace assay::graph
