/// \file Removes views that change nothing: a view to the same sizes, an identity permutation, a
/// slice of everything, where metadata proves it. Also asked by autograd/trace.cpp, for gradients.
#pragma once

#include "graph/pass_manager.h"

namespace assay::graph {

/// The node of which `node` is only another name (a view with the same sizes, strides and offset),
/// or nullptr.
Node* noop_source(const Node& node, const FactsOf& facts);

}  // namespace assay::graph
