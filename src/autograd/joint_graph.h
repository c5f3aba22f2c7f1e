/// \file The joint graph: forward and backward of one program in one functional ATen graph, and
/// what its inputs and outputs are to the caller. Made by autograd/trace.h, split by
/// autograd/partition.h, run by autograd/program.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace assay::autograd {

/// The memory that several inputs share, as one flat tensor.
struct SharedMemory {
  std::int64_t begin = 0;  ///< In elements, from where the input begins.
  std::int64_t size = 0;
};

/// One `primals_N` of the joint graph.
struct Primal {
  /// Which input of the program it is; not meaningful for a captured tensor.
  std::size_t input = 0;
  /// Set if it is not that input alone but the memory it shares with others, because one of them is
  /// changed in place.
  std::optional<SharedMemory> shared;
  /// Defined for a tensor that the program used without being given it, e.g. a parameter.
  at::Tensor captured;
  /// The program changes it in place: its new value is a forward output, copied back after the run.
  bool is_changed = false;
  /// The change is part of the differentiated program (it was not made under no_grad).
  bool is_change_differentiable = false;
  bool requires_grad = false;
};

/// One result of the program.
struct Output {
  enum class Kind {
    value,           ///< Forward output number `index`.
    input,           ///< The very tensor that is input number `index` of the program.
    captured,        ///< The very tensor that was captured as primal number `index`.
    view_of_primal,  ///< A view of primal number `index`, made again from it.
    view_of_value,   ///< A view of forward output number `index`, made again from it.
    same_as_output,  ///< The same tensor as the program's result number `index`.
  };
  Kind kind = Kind::value;
  std::size_t index = 0;
  bool requires_grad = false;
  /// For views: the operators that lead from the base to the result, as a graph of one input.
  std::shared_ptr<const graph::Graph> view;
};

struct JointGraph {
  /// Placeholders `primals_1`.. and `tangents_1`..; returns the forward outputs, then one gradient
  /// (or None) for each primal. Without tangents there are no gradients: a forward graph.
  std::unique_ptr<graph::Graph> graph;
  /// Forward outputs in order: new values of changed primals, results, bases of results.
  std::size_t forward_outputs = 0;
  std::vector<Primal> primals;
  std::vector<Output> outputs;
  /// For each tangent, the forward output whose gradient it is.
  std::vector<std::size_t> tangents;

  bool has_backward() const { return !tangents.empty(); }
};

}  // namespace assay::autograd
