/// \file The arguments of FX nodes <-> graph::Argument. For fx_graph.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <functional>
#include <string>
#include <unordered_map>

#include "graph/argument.h"
#include "graph/graph.h"

namespace assay::binding {

/// The nodes of our graph by the FX nodes they were made from.
using NodesByObject = std::unordered_map<PyObject*, graph::Node*>;

/// Throws `UserError` for an object that a graph cannot hold.
graph::Argument argument_from(pybind11::handle object, const NodesByObject& nodes);

/// `node_object` and `size_object` say what takes the place of a node and of a symbolic size.
struct ArgumentObjects {
  std::function<pybind11::object(const graph::Node&)> node_object;
  std::function<pybind11::object(const graph::SizeExpr&)> size_object;
};
pybind11::object argument_object(const graph::Argument& argument, const ArgumentObjects& objects);

/// The size that a text such as `32*s77` or `Max(1, s0)` spells. Throws `UserError` if it is none.
graph::SizeExpr size_from_text(const std::string& text);

}  // namespace assay::binding
