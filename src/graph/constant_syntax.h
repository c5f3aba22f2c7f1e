/// \file Constants in the text form: what an expression means when it mentions no graph value.
/// Used by graph/parse.h, for arguments and module attributes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "graph/argument.h"
#include "graph/python_parser.h"

namespace assay::graph {

/// Turns a subexpression into an argument; lets a caller mix graph values into containers.
using SyntaxReader = std::function<Argument(const python::Expression&)>;

/// The argument for literals, containers, `torch.float32`, `device(type='cpu')`, `slice(...)`,
/// `inf`, ...; nothing if the expression is something else (a name, a call, an operator).
/// Containers read their items with `read_item`.
std::optional<Argument> literal_from_syntax(const python::Source& source,
                                            const python::Expression& expression,
                                            const SyntaxReader& read_item);

}  // namespace assay::graph
