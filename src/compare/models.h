/// \file Does a compiled program compute what eager computes? Results, gradients, changed inputs.
///
/// The debug wrapper, the trials of the reducer and `assay.compare` ask this. Both programs get
/// copies of the same inputs and the same random numbers; eager in float64 is the judge.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "aten/value.h"
#include "compare/same.h"
#include "graph/graph.h"

namespace assay::compare {

/// A program, compiled or not.
using Callable = std::function<aten::Value(std::vector<aten::Value>)>;

/// Copies of the tensors, in lists and dicts too, that share memory and require grad as the
/// originals do. They have no gradients yet.
std::vector<aten::Value> clone_inputs_retaining_gradness(const std::vector<aten::Value>& inputs);

/// Does a tensor of the value require grad?
bool requires_bwd_pass(const aten::Value& value);

/// One differentiable number that depends on every tensor: the mean of a tensor; for lists and
/// dicts the mean over their items, of which those that are no tensors count as 0. Undefined if
/// there is no tensor.
at::Tensor reduce_to_scalar_loss(const aten::Value& value);

/// What one run of a program gave.
struct Results {
  aten::Value output;
  /// One per input; zeros where one that requires grad got none, None where it does not.
  std::vector<aten::Value> gradients;
  std::vector<aten::Value> inputs;  ///< As the program left them.
  /// One per input: it is not what it was before. Empty if nobody has looked.
  std::vector<bool> changed = {};
};

/// The gradients that `inputs` have after a backward pass, and what they are now.
Results collect_results(aten::Value output, std::vector<aten::Value> inputs);

/// Runs the program on copies of `inputs`, and then backward from the loss if an output requires
/// grad, unless `only_forward`. What the program throws comes through.
Results run_fwd_maybe_bwd(const Callable& program, const std::vector<aten::Value>& inputs,
                          bool only_forward = false);

struct TwoModelsOptions {
  bool only_forward = false;
  /// Judge results that are not close by a reference computed in float64.
  bool use_fp64 = true;
  /// Compute it in any case; that it cannot be computed is a `UserError`.
  bool require_fp64 = false;
  /// PyTorch's for this purpose: `repro_tolerance`, and NaN is equal to NaN.
  SameOptions same = {.tol = 1e-3, .equal_nan = true};
  /// Before the attributes of the graph are made, and before each run. Without it all start from
  /// the state the generator is in now.
  std::optional<std::uint64_t> seed = std::nullopt;
  // What else must be as in eager, of programs whose results are the same.
  bool strides = false;      ///< compare/memory.h
  bool aliasing = false;     ///< compare/memory.h
  bool second_call = false;  ///< The same again for a second call, with the same inputs.
};

struct TwoModels {
  /// `where` is `output[0]`, `gradient['x']` or `input['x']` (which the program changed).
  Comparison comparison = {};
  /// Eager itself failed: nothing was compared, and the compiled program did not run. Or the
  /// results differ, but those of two eager runs do so too.
  bool eager_failed = false;
  std::string eager_error = {};
  bool has_fp64_reference = false;  ///< It was needed, and there is one.
  std::string fp64_error = {};      ///< It was needed, and this is why there is none.
  /// What `ignore_non_fp` left out: "3 integer or bool results were not compared". Empty if
  /// nothing.
  std::string not_compared = {};

  bool same() const { return !eager_failed && comparison.same; }
};

/// Compares `compiled` with what `graph` computes eagerly. Neither `inputs` nor the state of the
/// random generator are changed. What `compiled` throws comes through: it is no wrong number.
/// `eager` is what an eager run from the seed of the options gave, for callers that have made one.
TwoModels same_two_models(const graph::Graph& graph, const Callable& compiled,
                          const std::vector<aten::Value>& inputs,
                          const TwoModelsOptions& options = {}, const Results* eager = nullptr);

/// Each result and each gradient that differs, in order. Errors are relative to the root mean
/// square of each tensor, so that small values count as large ones do. What two eager runs do not
/// agree on is left out. What eager or `compiled` throws comes through.
std::vector<Comparison> all_differences(const graph::Graph& graph, const Callable& compiled,
                                        const std::vector<aten::Value>& inputs,
                                        const TwoModelsOptions& options = {});

/// Runs `graph` eagerly once more, and compares it with the run that gave `eager`, both ways. Empty
/// if they are the same.
std::string why_not_repeatable(const graph::Graph& graph, const Results& eager,
                               const std::vector<aten::Value>& inputs,
                               const TwoModelsOptions& options = {});

}  // namespace assay::compare
