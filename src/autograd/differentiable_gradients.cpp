#include "autograd/differentiable_gradients.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "aten/operator_record.h"
#include "aten/rng_state.h"

namespace assay::autograd {

namespace {

using at::Tensor;

// One input of a call. Not the tensor itself, unless it is a leaf: if the program's caller writes a
// result to it in place, its history would lead to what keeps it.
struct KeptInput {
  Tensor data = {};
  torch::autograd::Edge history = {};
  std::optional<c10::VariableVersion> version = {};
  std::uint32_t version_when_kept = 0;

  Tensor unpack() const {
    if (version && version->current_version() != version_when_kept) {
      TORCH_CHECK(false,
                  "one of the variables needed for gradient computation has been modified by an "
                  "inplace operation: an input of a compiled program, of which a derivative is to "
                  "be differentiated again, is at version ",
                  version->current_version(), "; expected version ", version_when_kept);
    }
    if (!history.is_valid()) return data;
    Tensor variable = data.variable_data();
    torch::autograd::impl::set_gradient_edge(variable, history);
    return variable;
  }
};

struct KeptCall {
  std::vector<KeptInput> inputs;
  Tensor random_state;
};

void delete_kept_call(void* call) { delete static_cast<KeptCall*>(call); }

KeptInput keep_input(const Tensor& tensor) {
  KeptInput kept;
  if (!tensor.is_inference()) {
    kept.version = torch::autograd::impl::version_counter(tensor);
    kept.version_when_kept = kept.version->current_version();
  }
  if (tensor.is_leaf() && tensor.requires_grad()) {
    kept.data = tensor;
  } else {
    kept.data = tensor.variable_data();
    if (tensor.requires_grad()) kept.history = torch::autograd::impl::gradient_edge(tensor);
  }
  return kept;
}

// Autocast as it was where the program was called.
class AmbientAutocastScope {
 public:
  explicit AmbientAutocastScope(const aten::AutocastState& state) { set(state); }
  ~AmbientAutocastScope() { set(before_); }
  AmbientAutocastScope(const AmbientAutocastScope&) = delete;
  AmbientAutocastScope& operator=(const AmbientAutocastScope&) = delete;

 private:
  static void set(const aten::AutocastState& state) {
    at::autocast::set_autocast_enabled(at::kCPU, state.is_enabled);
    at::autocast::set_autocast_dtype(at::kCPU, state.dtype);
    at::autocast::set_autocast_cache_enabled(state.is_cache_enabled);
  }

  aten::AutocastState before_ = aten::AutocastState::current();
  aten::AutocastScope regions_;  // those that the program enters
};

bool reaches_gradients(const graph::Node* placeholder, const JointGraph& joint) {
  const auto& outputs = joint.graph->output()->args()[0].items();
  std::unordered_set<const graph::Node*> gradients;
  for (std::size_t i = joint.forward_outputs; i < outputs.size(); ++i) {
    gradients.insert(outputs[i].node());
  }
  std::unordered_set<const graph::Node*> reached = {placeholder};
  std::vector<const graph::Node*> waiting = {placeholder};
  while (!waiting.empty()) {
    const graph::Node* node = waiting.back();
    waiting.pop_back();
    if (gradients.contains(node)) return true;
    for (const graph::Node* user : node->users()) {
      if (reached.insert(user).second) waiting.push_back(user);
    }
  }
  return false;
}

// Running it again on copies of what it writes to gives the same gradients.
bool can_run_again(const JointGraph& joint) {
  for (const Primal& primal : joint.primals) {
    if (primal.shared) return false;
    if (!primal.is_changed) continue;
    if (primal.captured.defined() || primal.is_change_differentiable) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<const DifferentiableGradients> DifferentiableGradients::make(
    TensorProgram program, const JointGraph& joint, const std::vector<Tensor>& inputs) {
  if (!program || !can_run_again(joint)) return nullptr;
  return std::unique_ptr<const DifferentiableGradients>(
      new DifferentiableGradients(std::move(program), joint, inputs));
}

DifferentiableGradients::DifferentiableGradients(TensorProgram program, const JointGraph& joint,
                                                 const std::vector<Tensor>& inputs)
    : program_(std::move(program)),
      autocast_(aten::AutocastState::current()),
      inputs_(inputs.size()),
      primals_(joint.primals),
      results_(joint.forward_outputs) {
  for (const graph::Node& node : joint.graph->nodes()) {
    if (aten::operator_record(node).is_random) is_random_ = true;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t earlier = 0; earlier < i && !inputs_[i].same_as; ++earlier) {
      if (inputs[earlier].is_same(inputs[i])) inputs_[i].same_as = earlier;
    }
  }
  const auto placeholders = joint.graph->placeholders();
  for (std::size_t i = 0; i < primals_.size(); ++i) {
    if (primals_[i].captured.defined() || !primals_[i].is_changed) continue;
    inputs_[primals_[i].input].is_changed = true;
    inputs_[primals_[i].input].is_read = reaches_gradients(placeholders[i], joint);
  }
  for (std::size_t i = 0; i < joint.outputs.size(); ++i) {
    const Output& output = joint.outputs[i];
    if (output.kind == Output::Kind::value) {
      results_[output.index] = Result{i, false};
    } else if (output.kind == Output::Kind::view_of_value && !results_[output.index]) {
      results_[output.index] = Result{i, true};
    }
  }
}

Tensor DifferentiableGradients::keep(std::span<const c10::IValue> inputs) const {
  auto call = std::make_unique<KeptCall>();
  call->inputs.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    KeptInput& kept = call->inputs.emplace_back();
    if (inputs_[i].same_as) continue;
    const Tensor& tensor = inputs[i].toTensor();
    if (inputs_[i].is_changed) {
      kept.data = inputs_[i].is_read ? tensor.detach().clone() : tensor.variable_data();
    } else {
      kept = keep_input(tensor);
    }
  }
  if (is_random_) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    call->random_state = generator.get_state();
  }
  KeptCall* owned = call.release();
  return at::for_blob(owned, {0})
      .context(owned, &delete_kept_call)
      .options(at::kByte)
      .make_tensor();
}

std::vector<Tensor> DifferentiableGradients::run(const std::vector<Tensor>& inputs,
                                                 const Tensor& random_state) const {
  std::optional<aten::RestoreGeneratorScope> generator_after;
  if (random_state.defined()) {
    generator_after.emplace();
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(generator.mutex());
    generator.set_state(random_state);
  }
  const AmbientAutocastScope ambient(autocast_);
  return program_(inputs);
}

std::optional<std::vector<Tensor>> DifferentiableGradients::compute(
    const Tensor& kept, const std::vector<Tensor>& gradients) const {
  const auto* call =
      static_cast<const KeptCall*>(kept.storage().data_ptr().get_deleter() == &delete_kept_call
                                       ? kept.storage().data_ptr().get_context()
                                       : nullptr);
  if (call == nullptr) return std::nullopt;
  const c10::AutoGradMode grad(true);
  // As views, so that hooks of the inputs see the gradient only once: not here.
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < call->inputs.size(); ++i) {
    const KeptInput& input = call->inputs[i];
    if (inputs_[i].same_as) {
      inputs.push_back(inputs[*inputs_[i].same_as]);
    } else if (inputs_[i].is_changed) {
      inputs.push_back(input.data.clone());
    } else {
      const Tensor tensor = input.unpack();
      inputs.push_back(tensor.requires_grad() ? tensor.view_as(tensor) : tensor);
    }
  }
  std::vector<Tensor> wanted;
  std::vector<std::size_t> wanted_primals;
  for (std::size_t i = 0; i < primals_.size(); ++i) {
    const Tensor& tensor =
        primals_[i].captured.defined() ? primals_[i].captured : inputs[primals_[i].input];
    if (!tensor.requires_grad()) continue;
    if (primals_[i].captured.defined() && !torch::autograd::impl::hooks(tensor).empty()) {
      return std::nullopt;
    }
    wanted.push_back(tensor);
    wanted_primals.push_back(i);
  }

  const std::vector<Tensor> results = run(inputs, call->random_state);
  std::vector<Tensor> outputs;
  std::vector<Tensor> output_gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    if (i >= results_.size() || !results_[i]) return std::nullopt;
    const Tensor& result = results[results_[i]->index];
    if (results_[i]->is_base && !result.is_view()) return std::nullopt;
    const Tensor output = results_[i]->is_base ? Tensor(at::TensorBase(result._base())) : result;
    if (!output.requires_grad() || output.sizes() != gradients[i].sizes()) return std::nullopt;
    outputs.push_back(output);
    output_gradients.push_back(gradients[i]);
  }
  std::vector<Tensor> found(primals_.size());
  if (outputs.empty() || wanted.empty()) return found;
  const auto computed =
      torch::autograd::grad(outputs, wanted, output_gradients, /*retain_graph=*/true,
                            /*create_graph=*/true, /*allow_unused=*/true);
  for (std::size_t i = 0; i < computed.size(); ++i) found[wanted_primals[i]] = computed[i];
  return found;
}

}  // namespace assay::autograd
