/// \file Splits a joint graph where a partitioner has decided; the last step of each.
#pragma once

#include <unordered_set>

#include "autograd/joint_parts.h"
#include "autograd/partition.h"

namespace assay::autograd {

/// The halves when `saved` is handed from one to the other; values that backward does not use after
/// all are left out.
Partition split(const JointParts& parts, const std::unordered_set<const graph::Node*>& saved);

}  // namespace assay::autograd
