/// \file One value in the place of another: the view, expand, slice and cast that make a tensor
/// look like a different one. Called by what takes calls out of the middle of a program
/// (reduce/bypass.h).
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "reduce/candidate.h"

namespace assay::reduce {

/// What the readers of a tensor depend on.
struct Look {
  std::vector<std::int64_t> sizes;
  c10::ScalarType dtype = c10::ScalarType::Float;

  bool operator==(const Look&) const = default;
};

/// How the node's value looked when it was recorded; nothing if it was not one tensor.
std::optional<Look> look_of(const Candidate& program, const graph::Node& node);

/// A call that costs next to nothing and computes nothing: what `adapt` inserts, and `neg`.
bool is_cheap(const graph::Node& node);

/// Inserts what makes a value that looks like `wanted` from `node`, which looks like `own`, at the
/// graph's insertion point, and returns it: `node` itself if it fits. `as_operators`: the graph
/// calls ATen's operators. nullptr if one of them is empty and the other is not.
graph::Node* adapt(graph::Graph& graph, graph::Node& node, const Look& own, const Look& wanted,
                   bool as_operators);

}  // namespace assay::reduce
