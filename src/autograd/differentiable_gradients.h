/// \file Gradients that can themselves be differentiated (`create_graph=True`). A compiled backward
/// graph cannot be, because it was traced below autograd. So the program is run once more, operator
/// by operator and with autograd, on what the call kept of its inputs, and autograd computes the
/// gradients. Used by compiled_halves.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "aten/autocast_regions.h"
#include "autograd/joint_graph.h"

namespace assay::autograd {

/// The program as it was captured: its tensor inputs in, its results in, as in `JointGraph`.
using TensorProgram = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

class DifferentiableGradients {
 public:
  /// Null if the program cannot be run again: it writes to memory that inputs share, or it writes
  /// to an input as part of what is differentiated. To be made under the autocast state in which
  /// the program is called; `inputs` are those it was traced with, and inputs that are the same
  /// tensor there are so in every call.
  static std::unique_ptr<const DifferentiableGradients> make(TensorProgram program,
                                                             const JointGraph& joint,
                                                             const std::vector<at::Tensor>& inputs);

  /// What a call with these inputs has to keep, in a tensor that owns it: whoever saves that tensor
  /// for backward releases it as autograd releases all saved tensors.
  at::Tensor keep(std::span<const c10::IValue> inputs) const;

  /// The gradient of each primal of the joint graph, undefined where there is none; `gradients` are
  /// those of the forward outputs. Nothing if `kept` is not what `keep` returned, because a hook
  /// for saved tensors has replaced it, or if an output of the graph is none of the program.
  std::optional<std::vector<at::Tensor>> compute(const at::Tensor& kept,
                                                 const std::vector<at::Tensor>& gradients) const;

 private:
  // Which of the program's results a forward output is, or is the base of.
  struct Result {
    std::size_t index = 0;
    bool is_base = false;
  };

  // How a call keeps an input.
  struct Input {
    bool is_changed = false;
    bool is_read = false;  // if changed: the gradients depend on what it held before
    std::optional<std::size_t> same_as = {};  // an earlier input
  };

  DifferentiableGradients(TensorProgram program, const JointGraph& joint,
                          const std::vector<at::Tensor>& inputs);

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs,
                              const at::Tensor& random_state) const;

  TensorProgram program_;
  aten::AutocastState autocast_;
  bool is_random_ = false;
  std::vector<Input> inputs_;
  std::vector<Primal> primals_;
  std::vector<std::optional<Result>> results_;  // by forward output
};

}  // namespace assay::autograd
