/// \file Lets convolutions compute with the channels as the fastest dimension, which oneDNN does
/// faster (a depthwise one ten times). Eager has to keep the order of its input; inside a graph
/// nobody sees it, so between convolutions everything pointwise takes that order too, and what
/// leaves the graph, is viewed or is read by another operator is copied back into eager's.
#pragma once

#include "graph/graph.h"

namespace assay::kernels {

/// Whether the graph has convolutions that gain by the pass `channels_last`.
bool gains_by_channels_last(const graph::Graph& graph);

}  // namespace assay::kernels
