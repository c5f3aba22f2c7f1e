/// \file What backward may not compute a second time. Used by the min-cut partitioner.
///
/// Forward values are banned from recomputation if
/// - the call is not known to be cheap: see autograd/operator_kinds.h;
/// - the result is less than a quarter of what the call reads: it is cheap to save, and saving it
///   spares the reads (the statistics of a normalisation);
/// - an operator of backward that does not fuse reads it, at once or by way of views: it would have
///   to be written to memory there, so that recomputing is no cheaper than in forward;
/// - it adds a value to what came of it by way of an expensive call (a residual connection): were
///   these recomputed, all of them would be, from one end of the network to the other;
/// - a hundred calls in a row would be recomputed.
/// What only gradients use (Place::either) is computed once wherever it is, and never banned.
#pragma once

#include <unordered_set>

#include "autograd/joint_parts.h"

namespace assay::autograd {

std::unordered_set<const graph::Node*> recompute_bans(const JointParts& parts);

}  // namespace assay::autograd
