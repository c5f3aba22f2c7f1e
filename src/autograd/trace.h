/// \file Runs a program once on real tensors and gives back its joint graph.
///
/// The order of the layers is: the program, autograd, functionalization, the recorder, kernels. So
/// the graph holds the derivative formulas of libtorch itself, and no operator that changes or
/// aliases its arguments except views. Neither the inputs nor the random generator are changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "aten/recorder.h"
#include "autograd/joint_graph.h"

namespace assay::autograd {

using TensorFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// Tells which node of an earlier stage each recorded node comes from, forward and backward.
class Origins;

struct TraceOptions {
  /// Names the program in messages and the graph in its text form.
  std::string name = "GraphModule";
  /// Makes some operators out of simpler ones; see autograd/decompositions.h.
  aten::Recorder::Replacement decompose;
  /// Told by the program which of its nodes has just run.
  Origins* origins = nullptr;
  /// Says where in the user's program a refused call stands.
  std::function<std::string()> where;
};

/// Throws `TraceError` for what a graph cannot hold, `UserError` for inputs that are not supported;
/// what the program throws passes through.
JointGraph trace(const TensorFunction& program, const std::vector<at::Tensor>& inputs,
                 const TraceOptions& options = {});

}  // namespace assay::autograd
