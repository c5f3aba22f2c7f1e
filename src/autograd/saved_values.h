/// \file Which values forward can hand to backward, and whose memory they are. Shared by the
/// partitioners (autograd/partition.h), whose `value_bytes` is defined here too.
#pragma once

#include "graph/graph.h"

namespace assay::autograd {

/// The tensor that a chain of views starts from; the node itself if it is no view.
const graph::Node& base_of(const graph::Node& node);

/// Whether a value can be handed to backward: a tensor or an integer. Throws `UserError` if its
/// metadata is missing.
bool is_savable(const graph::Node& node);

/// True for an attribute that every graph makes the same: backward then reads its own copy.
bool is_repeatable_attribute(const graph::Graph& joint, const graph::Node& node);

}  // namespace assay::autograd
