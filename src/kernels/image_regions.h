/// \file Which images of a graph channels_last.cpp reorders. A region is some convolutions and what
/// lies between them and takes their order; it is worth while if they gain more than the copies at
/// its borders cost.
#pragma once

#include <functional>
#include <unordered_set>

#include "graph/graph.h"

namespace assay::kernels {

using IsReordered = std::function<bool(const graph::Node&)>;

/// Whether the result of a node, if it is no convolution, takes the order of the images it reads.
bool takes_order(const graph::Node& node, const IsReordered& is_reordered);

/// Whether a node reads images in whatever order they are.
bool reads_any_order(const graph::Node& node);

std::unordered_set<const graph::Node*> convolutions_to_reorder(const graph::Graph& graph);

}  // namespace assay::kernels
