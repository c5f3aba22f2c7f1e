// The only file that defines an autograd function.
#include "autograd/program.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <unordered_set>

#include "assay/error.h"
#include "aten/runner.h"
#include "observe/observe.h"

namespace assay::autograd {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const char* to_string(GraphRole role) {
  switch (role) {
    case GraphRole::inference:
      return "inference";
    case GraphRole::forward:
      return "forward";
    case GraphRole::backward:
      return "backward";
  }
  return "";
}

namespace {

struct TangentShape {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

std::vector<std::int64_t> constants(const std::vector<graph::SizeExpr>& sizes) {
  std::vector<std::int64_t> values;
  values.reserve(sizes.size());
  for (const graph::SizeExpr& size : sizes) values.push_back(size.evaluate({}));
  return values;
}

}  // namespace

// Shared by the program and by the autograd nodes of its calls, which may outlive it.
struct Program::State {
  JointGraph joint;
  std::shared_ptr<const graph::Graph> forward_graph;
  std::shared_ptr<const graph::Graph> backward_graph;
  CompiledGraph forward;
  CompiledGraph backward;
  std::uint64_t saved_bytes = 0;
  std::vector<TangentShape> tangents;
  /// Forward outputs that must be copied: they are an input, or another output once more.
  std::vector<bool> must_copy;
  std::vector<bool> is_differentiable;
  /// Saved values that are inputs written to after the run; backward needs what they held before.
  std::vector<std::size_t> saved_changed;
  std::vector<std::unique_ptr<aten::GraphRunner>> views;  // by result; null where not a view
};

namespace {

using State = Program::State;

// Gradients that were asked for with create_graph: differentiating them again is refused.
struct RefuseDoubleBackward : torch::autograd::Function<RefuseDoubleBackward> {
  static variable_list forward(AutogradContext*, at::TensorList gradients,
                               at::TensorList /*dependencies*/) {
    variable_list copies;
    for (const Tensor& gradient : gradients) copies.push_back(gradient.view_as(gradient));
    return copies;
  }
  static variable_list backward(AutogradContext*, const variable_list&) {
    throw UserError(
        "a second derivative was asked for through a compiled program, whose backward "
        "is not differentiable",
        "run this part with backend \"eager\", or without create_graph=True");
  }
};

Tensor with_strides(const Tensor& tensor, const TangentShape& shape) {
  if (tensor.strides() == shape.strides) return tensor;
  return at::empty_strided(shape.sizes, shape.strides, tensor.options()).copy_(tensor);
}

struct RunCompiled : torch::autograd::Function<RunCompiled> {
  static variable_list forward(AutogradContext* context, const std::shared_ptr<const State>& state,
                               at::TensorList primals) {
    variable_list outputs;
    {
      const at::AutoDispatchBelowADInplaceOrView below;
      outputs = state->forward(primals.vec());
      const std::size_t count = state->joint.forward_outputs;
      variable_list saved(
          std::make_move_iterator(outputs.begin() + static_cast<std::ptrdiff_t>(count)),
          std::make_move_iterator(outputs.end()));
      outputs.resize(count);
      for (std::size_t index : state->saved_changed) saved[index] = saved[index].clone();
      for (std::size_t i = 0; i < count; ++i) {
        if (state->must_copy[i]) outputs[i] = outputs[i].clone();
      }
      context->save_for_backward(std::move(saved));
    }
    variable_list constant;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!state->is_differentiable[i]) constant.push_back(outputs[i]);
    }
    if (!constant.empty()) context->mark_non_differentiable(constant);
    context->saved_data["state"] = c10::IValue::make_capsule(c10::make_intrusive<Holder>(state));
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto holder =
        c10::static_intrusive_pointer_cast<Holder>(context->saved_data["state"].toCapsule());
    const State& state = *holder->state;
    variable_list inputs = context->get_saved_variables();
    const variable_list dependencies = c10::GradMode::is_enabled() ? inputs : variable_list();
    variable_list results;
    {
      const c10::AutoGradMode no_grad(false);
      const at::AutoDispatchBelowADInplaceOrView below;
      for (std::size_t i = 0; i < state.joint.tangents.size(); ++i) {
        inputs.push_back(with_strides(gradients[state.joint.tangents[i]], state.tangents[i]));
      }
      results = state.backward(std::move(inputs));
    }
    if (c10::GradMode::is_enabled()) refuse_double_backward(results, dependencies, gradients);
    results.insert(results.begin(), Tensor());  // the state is no tensor and has no gradient
    return results;
  }

 private:
  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<const State> held) : state(std::move(held)) {}
    std::shared_ptr<const State> state;
  };

  static void refuse_double_backward(variable_list& results, variable_list dependencies,
                                     const variable_list& gradients) {
    dependencies.insert(dependencies.end(), gradients.begin(), gradients.end());
    variable_list defined;
    for (const Tensor& result : results) {
      if (result.defined()) defined.push_back(result);
    }
    variable_list marked =
        RefuseDoubleBackward::apply(at::TensorList(defined), at::TensorList(dependencies));
    auto next = marked.begin();
    for (Tensor& result : results) {
      if (result.defined()) result = *next++;
    }
  }
};

void find_copies(State& state) {
  std::unordered_set<const graph::Node*> seen;
  const auto& results = state.forward_graph->output()->args()[0].items();
  for (std::size_t i = 0; i < state.joint.forward_outputs; ++i) {
    const graph::Node* node = results[i].node();
    internal_check(node != nullptr, "a forward output is a tensor");
    state.must_copy.push_back(node->op() == graph::Op::placeholder || !seen.insert(node).second);
  }
}

void find_saved_changed(State& state, const std::vector<std::string>& saved) {
  const auto placeholders = state.forward_graph->placeholders();
  for (std::size_t i = 0; i < saved.size(); ++i) {
    for (std::size_t primal = 0; primal < placeholders.size(); ++primal) {
      if (placeholders[primal]->name() == saved[i] && state.joint.primals[primal].is_changed) {
        state.saved_changed.push_back(i);
      }
    }
  }
}

void describe_tangents(State& state) {
  for (const graph::Node* node : state.joint.graph->placeholders()) {
    if (node->meta.role != graph::InputRole::tangent) continue;
    const graph::TensorMeta* meta = node->meta.value.tensor();
    internal_check(meta != nullptr, "a tangent is a tensor");
    state.tangents.push_back({constants(meta->sizes), constants(meta->strides)});
  }
}

std::vector<Tensor> gather_primals(const JointGraph& joint, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> primals;
  primals.reserve(joint.primals.size());
  for (const Primal& primal : joint.primals) {
    if (primal.captured.defined()) {
      primals.push_back(primal.captured);
    } else if (primal.shared) {
      const Tensor& input = inputs[primal.input];
      primals.push_back(input.as_strided({primal.shared->size}, {1},
                                         input.storage_offset() + primal.shared->begin));
    } else {
      primals.push_back(inputs[primal.input]);
    }
  }
  return primals;
}

// The new values are the first forward outputs.
void write_changes(const JointGraph& joint, std::vector<Tensor>& primals,
                   const std::vector<Tensor>& values) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < joint.primals.size(); ++i) {
    if (!joint.primals[i].is_changed) continue;
    const c10::AutoGradMode grad(c10::GradMode::is_enabled() &&
                                 joint.primals[i].is_change_differentiable);
    primals[i].copy_(values[next++]);
  }
}

Tensor make_view(const aten::GraphRunner& view, const Tensor& base, bool requires_grad) {
  const c10::AutoGradMode grad(c10::GradMode::is_enabled() && requires_grad);
  return view.run_tensors({base})[0];
}

}  // namespace

Program::Program(JointGraph joint, Partitioner partitioner, const GraphCompiler& compiler) {
  const observe::Phase phase("compile_program", observe::Component::aot);
  auto state = std::make_shared<State>();
  state->joint = std::move(joint);
  const JointGraph& traced = state->joint;
  if (traced.has_backward()) {
    Partition halves = partitioner(*traced.graph, traced.forward_outputs);
    state->forward_graph = std::move(halves.forward);
    state->backward_graph = std::move(halves.backward);
    state->saved_bytes = halves.saved_bytes;
    state->forward = compiler(state->forward_graph, GraphRole::forward);
    state->backward = compiler(state->backward_graph, GraphRole::backward);
    describe_tangents(*state);
    find_saved_changed(*state, halves.saved);
  } else {
    state->forward_graph = traced.graph->clone();
    state->forward = compiler(state->forward_graph, GraphRole::inference);
  }
  find_copies(*state);
  state->is_differentiable.resize(traced.forward_outputs);
  for (std::size_t index : traced.tangents) state->is_differentiable[index] = true;
  for (const Output& output : traced.outputs) {
    state->views.push_back(
        output.view == nullptr ? nullptr : std::make_unique<aten::GraphRunner>(*output.view));
  }
  state_ = std::move(state);
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;

const JointGraph& Program::joint() const { return state_->joint; }
const graph::Graph& Program::forward() const { return *state_->forward_graph; }
const graph::Graph* Program::backward() const { return state_->backward_graph.get(); }
std::uint64_t Program::saved_bytes() const { return state_->saved_bytes; }

std::vector<Tensor> Program::run(const std::vector<Tensor>& inputs) const {
  const JointGraph& joint = state_->joint;
  std::vector<Tensor> primals = gather_primals(joint, inputs);
  std::vector<Tensor> values;
  if (joint.has_backward()) {
    values = RunCompiled::apply(state_, at::TensorList(primals));
  } else {
    const c10::AutoGradMode no_grad(false);
    const at::AutoDispatchBelowADInplaceOrView below;
    values = state_->forward(primals);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (state_->must_copy[i]) values[i] = values[i].clone();
    }
  }
  write_changes(joint, primals, values);
  std::vector<Tensor> results;
  results.reserve(joint.outputs.size());
  for (std::size_t i = 0; i < joint.outputs.size(); ++i) {
    const Output& output = joint.outputs[i];
    switch (output.kind) {
      case Output::Kind::value:
        results.push_back(values[output.index]);
        break;
      case Output::Kind::input:
        results.push_back(inputs[output.index]);
        break;
      case Output::Kind::captured:
        results.push_back(primals[output.index]);
        break;
      case Output::Kind::view_of_primal:
        results.push_back(
            make_view(*state_->views[i], primals[output.index], output.requires_grad));
        break;
      case Output::Kind::view_of_value:
        results.push_back(make_view(*state_->views[i], values[output.index], output.requires_grad));
        break;
      case Output::Kind::same_as_output:
        results.push_back(results[output.index]);
        break;
    }
  }
  return results;
}

}  // namespace assay::autograd
