/// \file The passes on a graph, one file each. graph/pass_manager.h runs them.
#pragma once

#include "graph/graph.h"
#include "graph/pass_manager.h"

namespace assay::graph {

/// Removes calls and attribute reads that nobody uses and that only compute.
void remove_dead_code(Graph& graph, PassContext& context);

/// Where two calls compute the same from the same, keeps the first. Does nothing in a graph that
/// changes a tensor in place: equal calls before and after the change are not equal.
void merge_common_subexpressions(Graph& graph, PassContext& context);

/// The node of which `node` is only another name (a view with the same sizes, strides and offset),
/// or nullptr.
Node* noop_source(const Node& node);

/// Removes views that change nothing (a view to the same sizes, an identity permutation, a slice of
/// everything), where metadata proves it.
void remove_noops(Graph& graph, PassContext& context);

}  // namespace assay::graph
