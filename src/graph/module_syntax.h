/// \file The attributes of a module as its `__init__` sets them; used by graph/parse.h.
#pragma once

#include <optional>

#include "graph/graph.h"
#include "graph/python_parser.h"

namespace assay::graph {

/// The attribute one statement of `__init__` sets: `self.x = Linear(...)`,
/// `self.register_buffer('x', torch.randn(...))`, `self.x = torch.nn.Parameter(...)`,
/// `self.x = <lambda>()`. Nothing for `super().__init__()`, `pass` and docstrings; throws
/// `UserError` for any other statement.
std::optional<Attribute> attribute_from_syntax(const python::Source& source,
                                               const python::Statement& statement);

}  // namespace assay::graph
