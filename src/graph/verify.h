/// \file Checks that a graph is well formed; run after every pass.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace assay::graph {

struct VerifyOptions {
  /// Says what is wrong with a call (an unknown operator, arguments that do not fit its schema), if
  /// anything. The aten room supplies it: aten/facts.h.
  std::function<std::optional<std::string>(const Node&)> check_call;
  /// Whether every call must carry metadata about its value.
  bool require_metadata = false;
};

/// One sentence per problem, with the node's name; empty if the graph is sound.
std::vector<std::string> find_problems(const Graph& graph, const VerifyOptions& options = {});

}  // namespace assay::graph
