/// \file The attributes of a module as its `__init__` sets them; used by graph/parse.h.
#pragma once

#include <variant>

#include "graph/graph.h"
#include "graph/python_parser.h"

namespace assay::graph {

/// What one statement of `__init__` sets: a tensor, module or subgraph (`Attribute`), or a plain
/// constant such as `self.scale = 0.5` (`NamedArgument`).
using InitStatement = std::variant<std::monostate, Attribute, NamedArgument>;

/// Reads `self.x = Linear(...).cuda()`, `self.register_buffer('x', torch.randn(...))`,
/// `self.x = torch.nn.Parameter(...)`, `setattr(self, 'x', ...)`, `self.x = <lambda>()`, `self.x =
/// 3`. Nothing for `super().__init__()`, `pass` and docstrings; throws `UserError` for any other
/// statement.
InitStatement init_statement_from_syntax(const python::Source& source,
                                         const python::Statement& statement);

/// The same for a statement of a class body: `_tensor_constant0 = tensor(1.0)`, as the first
/// versions of Dynamo wrote it. Nothing for anything else.
InitStatement class_statement_from_syntax(const python::Source& source,
                                          const python::Statement& statement);

/// What follows the constructor of a whole model: `Repro().cuda().half().eval()`. Changes `graph`'s
/// attributes as these calls do.
void apply_module_methods(const python::Source& source, const python::Expression& expression,
                          Graph& graph);

}  // namespace assay::graph
