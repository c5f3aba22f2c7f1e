/// \file The operators that lead from a tensor to a view of it, so that a result which is a view
/// can be made again from the caller's own tensor.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace assay::autograd {

/// A graph of one input that makes the view recorded as `node` out of the tensor recorded as
/// `base` in `graph`: the view operators between them. nullptr where there is no such chain.
std::shared_ptr<const graph::Graph> view_chain(const graph::Graph& graph, const graph::Node& base,
                                               const graph::Node& node);

}  // namespace assay::autograd
