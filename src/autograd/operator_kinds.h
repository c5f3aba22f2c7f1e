/// \file What it costs to call an operator again, for the partitioner that trades memory for
/// recomputation (autograd/recompute_bans.h).
///
/// Only what is known to be cheap is recomputed. Everything else, known or not, is expensive:
/// matrix products, convolutions, attention, normalisations, sorts, scatters, custom operators.
#pragma once

#include "graph/graph.h"

namespace assay::autograd {

enum class OperatorKind {
  view,       ///< Shares its input's memory: free. Also an item of a list of views.
  item,       ///< One result of a call with several: free if the call is.
  pointwise,  ///< Element by element, a constant fill or a copy: a compiler fuses it away.
  gather,     ///< Reads as much as it writes, wherever that lies: indexing, embedding.
  join,       ///< Writes its inputs side by side (cat): fuses with them, but not with its users.
  reduction,  ///< Sums, maxima, moments: fuse, but read more than they write.
  random,     ///< Draws from a generator: a second call gives other numbers.
  effect,     ///< Does more than compute (an assertion, a write), or is not known.
  expensive,  ///< Everything else.
};

/// The kind of a node; placeholders and attributes count as views of what the caller holds.
OperatorKind kind_of(const graph::Node& node);

/// True for calls that happen where the program has them, used or not: effects and random numbers
/// (leaving one out would change those that follow).
bool must_run(const graph::Node& node);

/// True if a compiler can make one loop of the node and a pointwise producer of its input.
bool fuses_with_inputs(const graph::Node& node);

/// Whether the node's value is one tensor, judged without metadata. False if not known.
bool gives_one_tensor(const graph::Node& node);

}  // namespace assay::autograd
