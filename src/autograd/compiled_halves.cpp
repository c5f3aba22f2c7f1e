// The only file that defines an autograd function.
#include "autograd/compiled_halves.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <unordered_set>

#include "assay/error.h"
#include "aten/runner.h"
#include "autograd/backward_graph.h"
#include "observe/observe.h"

namespace assay::autograd {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// State, which is not in an anonymous namespace, has members of this type.
struct TangentShape {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  at::TensorOptions options;
};

namespace {

std::vector<std::int64_t> constants(const std::vector<graph::SizeExpr>& sizes) {
  std::vector<std::int64_t> values;
  values.reserve(sizes.size());
  for (const graph::SizeExpr& size : sizes) values.push_back(size.evaluate({}));
  return values;
}

using Values = c10::SmallVector<c10::IValue, 8>;

}  // namespace

// Shared by the program and by the autograd nodes of its calls, which may outlive it.
struct CompiledHalves::State {
  JointGraph joint;
  std::shared_ptr<const graph::Graph> forward_graph;
  std::shared_ptr<const graph::Graph> backward_graph;
  std::shared_ptr<const CompiledGraph> forward;
  std::unique_ptr<const BackwardGraph> backward;
  /// Null where gradients cannot be differentiated again.
  std::unique_ptr<const DifferentiableGradients> differentiable;
  std::uint64_t saved_bytes = 0;
  std::vector<TangentShape> tangents;
  /// By primal: the tangents that its gradient is computed from.
  std::vector<std::vector<std::size_t>> tangents_of_gradient;
  /// By primal: whether it has a gradient at all. Others are not connected with what computed them.
  std::vector<bool> has_gradient;
  /// Forward outputs that must be copied: they are an input, or another output once more.
  std::vector<bool> must_copy;
  std::vector<bool> is_differentiable;
  /// Saved values that are inputs written to after the run; backward needs what they held before.
  std::vector<std::size_t> saved_changed;
  std::vector<std::unique_ptr<aten::GraphRunner>> views;  // by result; null where not a view
  /// By primal: it is needed after the graph has run, to be written to or returned.
  std::vector<bool> is_primal_kept;
  /// By input: the primal that reads it last, which may take it; none if it is returned.
  std::vector<std::optional<std::size_t>> last_reader;
};

namespace {

using State = CompiledHalves::State;

// Gradients that were asked for with create_graph, and that the compiled backward graph computed:
// differentiating them again is refused.
struct RefuseDoubleBackward : torch::autograd::Function<RefuseDoubleBackward> {
  static variable_list forward(AutogradContext*, at::TensorList gradients,
                               at::TensorList /*dependencies*/) {
    variable_list copies;
    for (const Tensor& gradient : gradients) copies.push_back(gradient.view_as(gradient));
    return copies;
  }
  static variable_list backward(AutogradContext*, const variable_list&) {
    throw UserError(
        "a second derivative was asked for through a compiled program that cannot be run once "
        "more to compute it: it writes to an input that takes part in autograd, or to memory that "
        "inputs share",
        "run this part with backend \"eager\", or without create_graph=True");
  }
};

// No gradient flows in at a result that the caller did not use.
Tensor with_strides(const Tensor& tensor, const TangentShape& shape) {
  if (!tensor.defined()) {
    return at::empty_strided(shape.sizes, shape.strides, shape.options).zero_();
  }
  if (tensor.strides() == shape.strides) return tensor;
  return at::empty_strided(shape.sizes, shape.strides, tensor.options()).copy_(tensor);
}

Tensor tensor_or_none(const c10::IValue& value) {
  return value.isNone() ? Tensor() : value.toTensor();
}

// What forward keeps for backward: tensors are saved with autograd, the rest here.
struct SavedForBackward : torch::CustomClassHolder {
  std::shared_ptr<const State> state;
  Values values;  // None where a tensor belongs
};

// A half runs below autograd, and its casts are in the graph: the caller's autocast is not for it.
struct RunningHalfScope {
  at::AutoDispatchBelowADInplaceOrView below;
  c10::impl::ExcludeDispatchKeyGuard casts{c10::autocast_dispatch_keyset};
};

// What a call keeps for gradients that are differentiated again; undefined if they cannot be. Not
// an input of the autograd function.
struct KeptForAgain {
  Tensor tensor;
};

struct RunCompiled : torch::autograd::Function<RunCompiled> {
  static variable_list forward(AutogradContext* context, const std::shared_ptr<const State>& state,
                               const KeptForAgain& kept, at::TensorList primals) {
    const RunningHalfScope running;
    Values inputs(primals.begin(), primals.end());
    Values results;
    state->forward->call(inputs, results);
    const std::size_t count = state->joint.forward_outputs;
    for (std::size_t index : state->saved_changed) {
      c10::IValue& saved = results[count + index];
      saved = saved.toTensor().clone();
    }
    auto saved = c10::make_intrusive<SavedForBackward>();
    saved->state = state;
    variable_list tensors;
    for (std::size_t i = count; i < results.size(); ++i) {
      if (results[i].isTensor()) {
        tensors.push_back(std::move(results[i]).toTensor());
        saved->values.emplace_back();
      } else {
        saved->values.push_back(std::move(results[i]));
      }
    }
    variable_list outputs;
    variable_list constant;
    outputs.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      Tensor output = std::move(results[i]).toTensor();
      outputs.push_back(state->must_copy[i] ? output.clone() : std::move(output));
      if (!state->is_differentiable[i]) constant.push_back(outputs.back());
    }
    if (kept.tensor.defined()) tensors.push_back(kept.tensor);
    context->save_for_backward(std::move(tensors));
    if (!constant.empty()) context->mark_non_differentiable(constant);
    context->set_materialize_grads(false);
    context->saved_data["saved"] = c10::IValue::make_capsule(std::move(saved));
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = c10::static_intrusive_pointer_cast<SavedForBackward>(
        context->saved_data["saved"].toCapsule());
    const State& state = *saved->state;
    variable_list tensors = context->get_saved_variables();
    variable_list results(2);  // the state and what is kept have no gradient
    Tensor kept;
    if (state.differentiable != nullptr) {
      kept = std::move(tensors.back());
      tensors.pop_back();
    }
    if (kept.defined() && c10::GradMode::is_enabled()) {
      if (auto found = state.differentiable->compute(kept, gradients)) {
        std::ranges::move(*found, std::back_inserter(results));
        return results;
      }
    }
    const variable_list dependencies = c10::GradMode::is_enabled() ? tensors : variable_list();
    {
      const c10::AutoGradMode no_grad(false);
      const RunningHalfScope running;
      Values inputs;
      auto next_tensor = tensors.begin();
      for (const c10::IValue& value : saved->values) {
        inputs.push_back(value.isNone() ? c10::IValue(std::move(*next_tensor++)) : value);
      }
      for (std::size_t i = 0; i < state.joint.tangents.size(); ++i) {
        inputs.emplace_back(with_strides(gradients[state.joint.tangents[i]], state.tangents[i]));
      }
      Values found;
      state.backward->call(inputs, found);
      for (std::size_t i = 0; i < found.size(); ++i) {
        results.push_back(flows_in(state, i, gradients) ? tensor_or_none(found[i]) : Tensor());
      }
    }
    if (c10::GradMode::is_enabled()) refuse_double_backward(results, dependencies, gradients);
    return results;
  }

 private:
  // As in eager, a primal that only unused results depend on has no gradient, rather than zeros: an
  // optimizer leaves it alone.
  static bool flows_in(const State& state, std::size_t primal, const variable_list& gradients) {
    const std::vector<std::size_t>& tangents = state.tangents_of_gradient[primal];
    return tangents.empty() || std::ranges::any_of(tangents, [&](std::size_t tangent) {
             return gradients[state.joint.tangents[tangent]].defined();
           });
  }

  static void refuse_double_backward(variable_list& results, variable_list dependencies,
                                     const variable_list& gradients) {
    std::ranges::copy_if(gradients, std::back_inserter(dependencies),
                         [](const Tensor& gradient) { return gradient.defined(); });
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
    state.tangents.push_back({constants(meta->sizes), constants(meta->strides),
                              at::TensorOptions(meta->device).dtype(meta->dtype)});
  }
}

void find_tangents_of_gradients(State& state) {
  const auto& results = state.joint.graph->output()->args()[0].items();
  state.tangents_of_gradient.resize(state.joint.primals.size());
  for (std::size_t i = 0; i < state.joint.primals.size(); ++i) {
    state.has_gradient.push_back(results[state.joint.forward_outputs + i].node() != nullptr);
  }
  std::size_t tangent = 0;
  for (const graph::Node* node : state.joint.graph->placeholders()) {
    if (node->meta.role != graph::InputRole::tangent) continue;
    std::unordered_set<const graph::Node*> reached = {node};
    std::vector<const graph::Node*> waiting = {node};
    while (!waiting.empty()) {
      const graph::Node* next = waiting.back();
      waiting.pop_back();
      for (const graph::Node* user : next->users()) {
        if (reached.insert(user).second) waiting.push_back(user);
      }
    }
    for (std::size_t i = 0; i < state.joint.primals.size(); ++i) {
      const graph::Node* gradient = results[state.joint.forward_outputs + i].node();
      if (reached.contains(gradient)) state.tangents_of_gradient[i].push_back(tangent);
    }
    ++tangent;
  }
}

// What is needed of the inputs once the graph has run.
void find_kept(State& state) {
  const JointGraph& joint = state.joint;
  state.is_primal_kept.resize(joint.primals.size());
  std::size_t inputs = 0;
  for (std::size_t i = 0; i < joint.primals.size(); ++i) {
    state.is_primal_kept[i] = joint.primals[i].is_changed;
    inputs = std::max(inputs, joint.primals[i].input + 1);
  }
  state.last_reader.resize(inputs);
  for (std::size_t i = 0; i < joint.primals.size(); ++i) {
    const Primal& primal = joint.primals[i];
    if (!primal.captured.defined()) state.last_reader[primal.input] = i;
  }
  for (const Output& output : joint.outputs) {
    if (output.kind == Output::Kind::captured || output.kind == Output::Kind::view_of_primal) {
      state.is_primal_kept[output.index] = true;
    } else if (output.kind == Output::Kind::input && output.index < inputs) {
      state.last_reader[output.index].reset();
    }
  }
}

Values gather_primals(const State& state, std::span<c10::IValue> inputs) {
  Values primals;
  primals.reserve(state.joint.primals.size());
  for (std::size_t i = 0; i < state.joint.primals.size(); ++i) {
    const Primal& primal = state.joint.primals[i];
    if (primal.captured.defined()) {
      primals.emplace_back(primal.captured);
    } else if (primal.shared) {
      const Tensor& input = inputs[primal.input].toTensor();
      primals.emplace_back(input.as_strided({primal.shared->size}, {1},
                                            input.storage_offset() + primal.shared->begin));
    } else if (state.last_reader[primal.input] == i) {
      primals.push_back(std::move(inputs[primal.input]));
    } else {
      primals.push_back(inputs[primal.input]);
    }
  }
  return primals;
}

// The new values are the first forward outputs.
void write_changes(const JointGraph& joint, const Values& primals, const Values& values) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < joint.primals.size(); ++i) {
    if (!joint.primals[i].is_changed) continue;
    const c10::AutoGradMode grad(c10::GradMode::is_enabled() &&
                                 joint.primals[i].is_change_differentiable);
    primals[i].toTensor().copy_(values[next++].toTensor());
  }
}

c10::IValue make_view(const aten::GraphRunner& view, const c10::IValue& base, bool requires_grad) {
  const c10::AutoGradMode grad(c10::GradMode::is_enabled() && requires_grad);
  std::array<c10::IValue, 1> inputs = {base};
  Values made;
  view.call(inputs, made);
  return std::move(made[0]);
}

// Forward, without anything that remembers it for backward.
Values run_inference(const State& state, Values primals) {
  const c10::AutoGradMode no_grad(false);
  const RunningHalfScope running;
  Values values;
  state.forward->call(primals, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (state.must_copy[i]) values[i] = values[i].toTensor().clone();
  }
  return values;
}

Values run_forward(const std::shared_ptr<const State>& state, const KeptForAgain& kept,
                   Values primals) {
  variable_list tensors;
  tensors.reserve(primals.size());
  const bool has_gradients = std::ranges::count(state->has_gradient, true) > 0;
  for (c10::IValue& primal : primals) {
    Tensor tensor = std::move(primal).toTensor();
    // As in eager, backward of this program does not go on to one that only a detach() reads from.
    if (has_gradients && !state->has_gradient[tensors.size()] && tensor.requires_grad()) {
      tensor = tensor.detach();
    }
    tensors.push_back(std::move(tensor));
  }
  variable_list results = RunCompiled::apply(state, kept, at::TensorList(tensors));
  return {std::make_move_iterator(results.begin()), std::make_move_iterator(results.end())};
}

CompileRequest request_for(const HalvesOptions& options, std::shared_ptr<const graph::Graph> graph,
                           Role role, std::vector<c10::IValue> inputs) {
  CompileRequest request;
  request.graph = std::move(graph);
  request.inputs = std::move(inputs);
  request.role = role;
  request.options = options.options;
  request.context = options.context;
  return request;
}

}  // namespace

CompiledHalves::CompiledHalves(JointGraph joint, const std::vector<Tensor>& inputs,
                               const HalvesOptions& options) {
  const observe::Phase phase("compile_program", observe::Component::aot);
  auto state = std::make_shared<State>();
  state->joint = std::move(joint);
  const JointGraph& traced = state->joint;
  find_kept(*state);
  Values given(inputs.begin(), inputs.end());
  const Values primals = gather_primals(*state, given);
  std::vector<c10::IValue> examples(primals.begin(), primals.end());
  if (traced.has_backward()) {
    Partition halves = options.partitioner(*traced.graph, traced.forward_outputs);
    state->forward_graph = std::move(halves.forward);
    state->backward_graph = std::move(halves.backward);
    state->saved_bytes = halves.saved_bytes;
    state->forward = options.compiler(
        request_for(options, state->forward_graph, Role::forward, std::move(examples)));
    state->backward = std::make_unique<BackwardGraph>(
        options.compiler, request_for(options, state->backward_graph, Role::backward, {}),
        options.lazy_backward);
    describe_tangents(*state);
    find_tangents_of_gradients(*state);
    find_saved_changed(*state, halves.saved);
    state->differentiable = DifferentiableGradients::make(options.program, traced, inputs);
  } else {
    state->forward_graph = traced.graph->clone();
    state->forward = options.compiler(
        request_for(options, state->forward_graph, Role::inference, std::move(examples)));
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

CompiledHalves::~CompiledHalves() = default;
CompiledHalves::CompiledHalves(CompiledHalves&&) noexcept = default;

const JointGraph& CompiledHalves::joint() const { return state_->joint; }
const graph::Graph& CompiledHalves::forward() const { return *state_->forward_graph; }
const graph::Graph* CompiledHalves::backward() const { return state_->backward_graph.get(); }
std::uint64_t CompiledHalves::saved_bytes() const { return state_->saved_bytes; }

void CompiledHalves::call(std::span<c10::IValue> inputs, Outputs& outputs) const {
  const JointGraph& joint = state_->joint;
  KeptForAgain kept_call;
  if (state_->differentiable != nullptr) kept_call.tensor = state_->differentiable->keep(inputs);
  Values primals = gather_primals(*state_, inputs);
  Values kept(primals.size());
  for (std::size_t i = 0; i < primals.size(); ++i) {
    if (state_->is_primal_kept[i]) kept[i] = primals[i];
  }
  const Values values = joint.has_backward() ? run_forward(state_, kept_call, std::move(primals))
                                             : run_inference(*state_, std::move(primals));
  write_changes(joint, kept, values);
  const std::size_t first = outputs.size();
  for (std::size_t i = 0; i < joint.outputs.size(); ++i) {
    const Output& output = joint.outputs[i];
    switch (output.kind) {
      case Output::Kind::value:
        outputs.push_back(values[output.index]);
        break;
      case Output::Kind::input:
        outputs.push_back(inputs[output.index]);
        break;
      case Output::Kind::captured:
        outputs.push_back(kept[output.index]);
        break;
      case Output::Kind::view_of_primal:
        outputs.push_back(make_view(*state_->views[i], kept[output.index], output.requires_grad));
        break;
      case Output::Kind::view_of_value:
        outputs.push_back(make_view(*state_->views[i], values[output.index], output.requires_grad));
        break;
      case Output::Kind::same_as_output:
        outputs.push_back(c10::IValue(outputs[first + output.index]));
        break;
    }
  }
}

}  // namespace assay::autograd
