/// \file Which call is the first to compute something wrong?
///
/// A reference graph runs eagerly, call by call. Each call is also made by the suspect, with the
/// reference's values as its inputs: so what is wrong about its result is its own fault, and not
/// that of a call before it. Used after `same_two_models` found a difference.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "aten/value.h"
#include "compare/same.h"
#include "graph/graph.h"

namespace assay::compare {

/// The call that went wrong.
struct Divergence {
  std::string node;                                       ///< Its name in the reference graph.
  std::string call;                                       ///< `torch.ops.aten.relu.default(x)`.
  std::vector<graph::StackFrame> stack = {};              ///< The user's lines, outermost first.
  std::optional<std::size_t> text_offset = std::nullopt;  ///< In the reference graph's text.
  /// `where` is the place in the call's result (empty if it is one tensor), or `input['x']` if the
  /// call left a wrong value in an argument. Errors are relative to the tensor's size (its root
  /// mean square) if the options say so.
  Comparison comparison = {};
};

struct DivergenceOptions {
  SameOptions same = {.tol = 1e-4, .equal_nan = true};
  /// A call that is not close is judged by the same call in float64.
  bool use_fp64 = true;
  /// Errors are relative to the root mean square of the tensor, so that those in gradients, which
  /// are often all smaller than `tol`, are seen.
  bool relative = true;
};

/// The suspect is another graph with the same calls by name. Nodes that only it has belong to the
/// node of a common name before them if their results take its place (`relu_3_fault` after
/// `relu_3`), else to the node that uses them. Calls that only the reference has are not judged.
/// Neither `inputs` nor the random generator are changed. All values of a run are in memory at
/// once.
///
/// Throws `aten::OperatorError` if a call raises, `UserError` if the graphs have nothing in common.
std::optional<Divergence> first_divergence(const graph::Graph& reference,
                                           const graph::Graph& suspect,
                                           const std::vector<aten::Value>& inputs,
                                           const DivergenceOptions& options = {});

/// Makes one call of the graph: `inputs` are the values of the nodes that it mentions, each once,
/// in the order of their first mention. They may be changed if the call changes them.
using NodeKernel =
    std::function<aten::Value(const graph::Node& node, std::vector<aten::Value> inputs)>;

/// The suspect is a function that makes single calls, as a compiler of kernels can.
std::optional<Divergence> first_divergence(const graph::Graph& graph, const NodeKernel& suspect,
                                           const std::vector<aten::Value>& inputs,
                                           const DivergenceOptions& options = {});

}  // namespace assay::compare
