/// \file What is done to a joint graph between the trace and the partitioner.
#pragma once

#include "graph/graph.h"

namespace assay::autograd {

/// Removes from a traced graph what the trace recorded in vain. Called by autograd/trace.cpp.
void clean_up_joint(graph::Graph& joint);

}  // namespace assay::autograd
