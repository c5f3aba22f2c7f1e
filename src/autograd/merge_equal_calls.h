/// \file Makes equal calls of a functional graph one. Autograd's formulas call again what forward
/// has called; a partitioner must see that it is the same value. Used by the min-cut partitioner.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace assay::autograd {

/// A copy of `original` in which of equal calls only the first is left. Unlike the pass of the
/// graph room it goes on in the presence of random numbers, which change no tensor; in a graph that
/// writes to tensors it merges nothing.
std::unique_ptr<graph::Graph> merge_equal_calls(const graph::Graph& original);

}  // namespace assay::autograd
