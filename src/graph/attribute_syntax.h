/// \file Which attribute of a module an expression names: `self.a.b`, `getattr(self, "0")`,
/// `self.layers[0]`. Used by graph/forward_syntax.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/python_parser.h"

namespace assay::graph {

/// The path from self, `layers.0.weight`; nothing if the expression is not one. An index is part of
/// a path only behind a module of `graph`: `self.weight[0]` is an item of a tensor.
std::optional<std::string> attribute_path(const Graph& graph, const python::Expression& expression);

/// True for `weight.t` where `weight` is a tensor: what is called there is its method.
bool is_method_of_tensor(const Graph& graph, std::string_view path);

}  // namespace assay::graph
