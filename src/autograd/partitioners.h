/// \file The two ways to split a joint graph, without what is done around them. Called by
/// autograd/partition_pipeline.cpp alone; everything else calls autograd/partition.h.
#pragma once

#include "autograd/partition.h"

namespace assay::autograd {

/// The pass `partition_default`.
Partition save_what_backward_uses(const graph::Graph& joint, std::size_t forward_outputs);

/// The pass `partition_min_cut`. Equal calls must have been merged.
Partition save_fewest_bytes(const graph::Graph& joint, std::size_t forward_outputs);

}  // namespace assay::autograd
