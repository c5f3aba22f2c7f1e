// The only file that runs libtorch's autograd inside a trace.
#include "autograd/trace.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/_unsafe_view.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/node.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "assay/error.h"
#include "aten/facts.h"
#include "aten/operators.h"
#include "aten/rng_state.h"
#include "aten/supported.h"
#include "aten/trace_keys.h"
#include "autograd/joint_pipeline.h"
#include "autograd/origins.h"
#include "autograd/shared_memory.h"
#include "autograd/view_chain.h"
#include "graph/passes/noops.h"
#include "observe/observe.h"

namespace assay::autograd {

namespace {

using at::Tensor;
using graph::Argument;
using graph::Node;
namespace functionalization = at::functionalization::impl;

// One primal while it is traced.
struct TracedPrimal {
  Tensor plain;          // the user's data, without history
  Tensor leaf;           // the functional tensor that gradients are taken for
  bool is_leaf = false;  // for the user, too
  // What the program may change. If the user's tensor has a history it is a copy, since autograd
  // lets no leaf be changed, nor a view of one.
  Tensor changeable;
  Node* placeholder = nullptr;
  Node* initial = nullptr;  // the node of `changeable` before the program ran
  c10::intrusive_ptr<torch::autograd::Node> initial_history;
};

// One input of the program: a view of its primal, which the program may change.
struct TracedInput {
  std::size_t primal = 0;
  Tensor given;     // by the user
  Tensor argument;  // what the program is given
};

// The trace has to be made again with inputs that share memory as views of that memory.
struct InputsShareChangedMemory {};

// A value of the program as functionalization left it: up to date and plain.
Tensor plain_value(const Tensor& tensor) {
  if (!functionalization::isFunctionalTensor(tensor)) return tensor;
  // Views are made again here. Above this key a view of another dtype would be a copy of the tensor
  // that the recorder saw.
  const at::AutoDispatchBelowADInplaceOrView below;
  functionalization::sync(tensor);
  return functionalization::from_functional_tensor(tensor);
}

class Trace {
 public:
  Trace(const TensorFunction& program, const TraceOptions& options, bool merges_shared_memory)
      : program_(program), options_(options), merges_shared_memory_(merges_shared_memory) {
    joint_.graph = std::make_unique<graph::Graph>(options.name);
    recorder_.emplace(*joint_.graph);
    recorder_->set_replacement(options.decompose);
    recorder_->set_where(options.where);
    recorder_->set_listener([this](Node& node) { note_origin(node); });
  }

  JointGraph run(const std::vector<Tensor>& inputs) {
    // Random operators run for real; the program's own run must draw the same numbers.
    const aten::RestoreGeneratorScope keep_generator;
    const aten::Recorder::ActiveScope active(*recorder_);
    add_inputs(inputs);
    {
      const aten::TraceBelowAutogradScope traced;
      const c10::impl::IncludeDispatchKeyGuard functionalize(c10::DispatchKey::Functionalize);
      const functionalization::FunctionalizationReapplyViewsGuard reapply_views(true);
      run_forward();
      add_captures();
      find_changes();
      sort_outputs();
      run_backward();
      set_output();
    }
    clean_up();
    return std::move(joint_);
  }

 private:
  void note_origin(Node& node) {
    if (options_.origins == nullptr) return;
    if (!is_backward_) {
      options_.origins->add(node, -1);
      return;
    }
    const auto current = torch::autograd::get_current_node();
    if (current != nullptr) {
      options_.origins->add(node, static_cast<std::int64_t>(current->sequence_nr()));
    }
  }

  // ---- inputs ----

  void add_inputs(const std::vector<Tensor>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      aten::check_supported(inputs[i], "input " + std::to_string(i));
      const auto same = std::ranges::find_if(
          inputs_, [&](const TracedInput& known) { return known.given.is_same(inputs[i]); });
      if (same != inputs_.end()) {
        inputs_.push_back(*same);
        continue;
      }
      const std::vector<std::size_t> sharing = inputs_sharing_memory(inputs, i);
      if (merges_shared_memory_ && sharing.size() > 1) {
        inputs_.push_back({primal_of_shared_memory(inputs, sharing), inputs[i], {}});
      } else {
        inputs_.push_back({add_primal(inputs[i], i, std::nullopt), inputs[i], {}});
      }
    }
  }

  std::size_t primal_of_shared_memory(const std::vector<Tensor>& inputs,
                                      const std::vector<std::size_t>& sharing) {
    for (std::size_t i = 0; i < joint_.primals.size(); ++i) {
      if (joint_.primals[i].shared && joint_.primals[i].input == sharing[0]) return i;
    }
    const SharedMemory shared = shared_memory(inputs, sharing);
    const Tensor& first = inputs[sharing[0]];
    const aten::NotTracedScope guard;
    const Tensor memory =
        first.detach().as_strided({shared.size}, {1}, first.storage_offset() + shared.begin);
    return add_primal(memory, sharing[0], shared);
  }

  std::size_t add_primal(const Tensor& tensor, std::size_t input,
                         std::optional<SharedMemory> shared) {
    TracedPrimal made;
    {
      const aten::NotTracedScope guard;
      made.plain = tensor.detach();
    }
    made.placeholder =
        &recorder_->add_input("primals_" + std::to_string(primals_.size() + 1), made.plain);
    made.leaf = functionalization::to_functional_tensor(made.plain);
    if (tensor.requires_grad()) made.leaf.set_requires_grad(true);
    made.is_leaf = tensor.is_leaf() && !tensor.is_view();
    primals_.push_back(std::move(made));
    Primal primal;
    primal.input = input;
    primal.shared = shared;
    primal.requires_grad = tensor.requires_grad();
    joint_.primals.push_back(std::move(primal));
    return joint_.primals.size() - 1;
  }

  // ---- forward ----

  void run_forward() {
    for (std::size_t i = 0; i < primals_.size(); ++i) {
      make_changeable(primals_[i], joint_.primals[i].shared.has_value());
    }
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i].argument = make_argument(i);
      arguments.push_back(inputs_[i].argument);
    }
    for (std::size_t i = 0; i < primals_.size(); ++i) {
      recorder_->overlapping_writes().add_input(primals_[i].changeable,
                                                joint_.primals[i].shared.has_value());
    }
    {
      const c10::AutoGradMode keep_mode(c10::GradMode::is_enabled());
      outputs_ = program_(arguments);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].defined()) {
        throw UserError("output " + std::to_string(i) + " of the program is an undefined tensor",
                        "return only tensors that were computed");
      }
    }
  }

  Tensor make_argument(std::size_t index) {
    const TracedInput& input = inputs_[index];
    for (std::size_t i = 0; i < index; ++i) {
      if (inputs_[i].given.is_same(input.given)) return inputs_[i].argument;
    }
    const Tensor& changeable = primals_[input.primal].changeable;
    const Primal& primal = joint_.primals[input.primal];
    if (!primal.shared) return changeable;
    const std::int64_t begin = inputs_[primal.input].given.storage_offset() + primal.shared->begin;
    return changeable.as_strided(input.given.sizes(), input.given.strides(),
                                 input.given.storage_offset() - begin);
  }

  void make_changeable(TracedPrimal& primal, bool is_shared) {
    primal.changeable = primal.leaf;
    // as_strided counts from where the storage begins, which is where a copy begins.
    if (is_shared) primal.changeable = primal.leaf.clone();
    // What is a leaf for the user stays one: autocast casts it once in a region.
    if (primal.leaf.requires_grad() && !primal.is_leaf) {
      const c10::AutoGradMode grad(true);
      // A copy of a tensor with gaps has other strides. This is none, nor a view to autograd.
      const Tensor copy = primal.leaf.clone();
      primal.changeable = copy.strides() == primal.leaf.strides()
                              ? copy
                              : at::_unsafe_view(primal.leaf, primal.leaf.sizes());
    }
    primal.initial = &recorder_->node_of(plain_value(primal.changeable));
    primal.initial_history = primal.changeable.grad_fn();
  }

  // What the program used besides its inputs becomes inputs too, behind them.
  void add_captures() {
    const auto& captures = recorder_->captures();
    for (std::size_t i = seen_captures_; i < captures.size(); ++i) {
      Primal primal;
      primal.captured = captures[i].tensor;
      primal.requires_grad = captures[i].tensor.requires_grad();
      aten::check_supported(primal.captured, "a tensor the program uses without being given it");
      joint_.primals.push_back(std::move(primal));
      joint_.graph->rename(*captures[i].placeholder,
                           "primals_" + std::to_string(joint_.primals.size()));
    }
    seen_captures_ = captures.size();
  }

  void find_changes() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) check_geometry(i);
    for (std::size_t i = 0; i < primals_.size(); ++i) {
      const Tensor value = plain_value(primals_[i].changeable);
      Node& node = recorder_->node_of(value);
      if (&without_noops(node) == &without_noops(*primals_[i].initial)) continue;
      if (!joint_.primals[i].shared && shares_memory(i)) throw InputsShareChangedMemory();
      joint_.primals[i].is_changed = true;
      const Tensor differentiated = differentiated_change(i);
      joint_.primals[i].is_change_differentiable = differentiated.defined();
      add_forward_output(node, value, differentiated);
    }
    for (const aten::CapturedTensor& capture : recorder_->captures()) {
      if (!capture.is_changed) continue;
      Primal& primal = primal_of(capture.tensor);
      primal.is_changed = true;
      add_forward_output(recorder_->node_of(capture.tensor), capture.tensor, Tensor());
    }
  }

  void check_geometry(std::size_t input) const {
    const TracedInput& traced = inputs_[input];
    bool is_same = traced.argument.sizes() == traced.given.sizes();
    for (std::int64_t dim = 0; is_same && dim < traced.given.dim(); ++dim) {
      // The stride of a single element means nothing, and a copy may have another one.
      is_same =
          traced.given.size(dim) <= 1 || traced.argument.stride(dim) == traced.given.stride(dim);
    }
    if (is_same) return;
    throw TraceError("the program changes the size, strides or storage of input " +
                         std::to_string(input) + " in place",
                     "return the changed tensor instead of using transpose_, resize_, set_ and the "
                     "like on an input");
  }

  bool shares_memory(std::size_t primal) const {
    const c10::Storage& storage = primals_[primal].plain.storage();
    for (std::size_t i = 0; i < primals_.size(); ++i) {
      if (i != primal && primals_[i].plain.storage().is_alias_of(storage)) return true;
    }
    return false;
  }

  // The tensor through which gradients flow into a change of a primal: undefined if none do, as
  // when the change was made under no_grad or through a detached alias.
  Tensor differentiated_change(std::size_t primal) const {
    const Tensor& changed = primals_[primal].changeable;
    const bool has_new_history =
        changed.requires_grad() && changed.grad_fn() != primals_[primal].initial_history;
    return has_new_history ? changed : Tensor();
  }

  Primal& primal_of(const Tensor& captured) {
    const auto found = std::ranges::find_if(joint_.primals, [&](const Primal& primal) {
      return primal.captured.defined() && primal.captured.is_same(captured);
    });
    internal_check(found != joint_.primals.end(), "a capture is a primal");
    return *found;
  }

  static Node& without_noops(Node& node) {
    Node* at = &node;
    while (Node* source = graph::noop_source(*at, &aten::call_facts)) at = source;
    return *at;
  }

  // ---- outputs ----

  // `differentiated`: the tensor whose gradient flows in at this output, if any.
  std::size_t add_forward_output(Node& node, const Tensor& value, const Tensor& differentiated) {
    const std::size_t index = forward_outputs_.size();
    forward_outputs_.push_back(&node);
    if (differentiated.defined() && differentiated.requires_grad()) {
      joint_.tangents.push_back(index);
      differentiated_.push_back(differentiated);
      tangent_like_.push_back(value);
    }
    return index;
  }

  void sort_outputs() {
    std::vector<Tensor> values;
    for (const Tensor& output : outputs_) values.push_back(plain_value(output));
    add_captures();  // a program may return what it was not given
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      joint_.outputs.push_back(sort_output(i, values));
    }
  }

  Output sort_output(std::size_t i, const std::vector<Tensor>& values) {
    const Tensor& output = outputs_[i];
    Output made;
    made.requires_grad = output.requires_grad();
    for (std::size_t k = 0; k < i; ++k) {
      if (outputs_[k].is_same(output)) {
        made.kind = Output::Kind::same_as_output;
        made.index = k;
        return made;
      }
    }
    if (auto primal = primal_sharing(values[i])) {
      if (auto found = output_on_primal(*primal, i, values)) return *found;
    }
    if (made.requires_grad && shares_with_other(i, values)) {
      if (auto view = view_of_base(i, values)) return *view;
    }
    // A view of it may have been returned before, and have added it.
    auto [found, is_new] = value_of_output_.try_emplace(output.unsafeGetTensorImpl(), 0);
    if (is_new) {
      found->second = add_forward_output(recorder_->node_of(values[i]), values[i], output);
    }
    made.index = found->second;
    return made;
  }

  // The value of a primal after the program.
  Tensor final_value(std::size_t primal) {
    if (primal < primals_.size()) return plain_value(primals_[primal].changeable);
    return joint_.primals[primal].captured;
  }

  std::optional<std::size_t> primal_sharing(const Tensor& value) {
    for (std::size_t i = 0; i < joint_.primals.size(); ++i) {
      const Tensor base = final_value(i);
      if (value.has_storage() && base.has_storage() &&
          value.storage().is_alias_of(base.storage())) {
        return i;
      }
    }
    return std::nullopt;
  }

  std::optional<Output> output_on_primal(std::size_t primal, std::size_t i,
                                         const std::vector<Tensor>& values) {
    Output made;
    made.index = primal;
    made.requires_grad = outputs_[i].requires_grad();
    const auto same = std::ranges::find_if(
        inputs_, [&](const TracedInput& input) { return input.argument.is_same(outputs_[i]); });
    if (same != inputs_.end()) {
      made.kind = Output::Kind::input;
      made.index = static_cast<std::size_t>(same - inputs_.begin());
      return made;
    }
    if (outputs_[i].is_same(joint_.primals[primal].captured)) {
      made.kind = Output::Kind::captured;
      return made;
    }
    made.kind = Output::Kind::view_of_primal;
    made.view = view_chain(*joint_.graph, recorder_->node_of(final_value(primal)),
                           recorder_->node_of(values[i]));
    if (made.view == nullptr) return std::nullopt;  // e.g. unsafe_split, which is no view
    return made;
  }

  bool shares_with_other(std::size_t i, const std::vector<Tensor>& values) const {
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (k != i && !outputs_[k].is_same(outputs_[i]) && values[k].has_storage() &&
          values[i].has_storage() && values[k].storage().is_alias_of(values[i].storage())) {
        return true;
      }
    }
    return false;
  }

  // Results that share memory are views of one base, so that what the caller does to one is seen,
  // and differentiated, through the others.
  std::optional<Output> view_of_base(std::size_t i, const std::vector<Tensor>& values) {
    const Tensor& output = outputs_[i];
    if (!output.is_view()) return std::nullopt;
    const Tensor base(output._base());
    const Tensor value = plain_value(base);
    auto [found, is_new] = value_of_output_.try_emplace(base.unsafeGetTensorImpl(), 0);
    if (is_new) {
      bases_.push_back(base);
      found->second = add_forward_output(recorder_->node_of(value), value, base);
    }
    Output made;
    made.kind = Output::Kind::view_of_value;
    made.requires_grad = output.requires_grad();
    made.index = found->second;
    made.view = view_chain(*joint_.graph, recorder_->node_of(value), recorder_->node_of(values[i]));
    if (made.view == nullptr) return std::nullopt;
    return made;
  }

  // ---- backward ----

  void run_backward() {
    joint_.forward_outputs = forward_outputs_.size();
    gradients_.assign(joint_.primals.size(), Argument());
    if (joint_.tangents.empty()) return;
    std::vector<Tensor> tangents;
    for (std::size_t i = 0; i < tangent_like_.size(); ++i) tangents.push_back(make_tangent(i));
    std::vector<Tensor> wanted;
    std::vector<std::size_t> wanted_primals;
    for (std::size_t i = 0; i < joint_.primals.size(); ++i) {
      if (!joint_.primals[i].requires_grad) continue;
      wanted.push_back(i < primals_.size() ? primals_[i].leaf : joint_.primals[i].captured);
      wanted_primals.push_back(i);
    }
    is_backward_ = true;
    // backward() is called outside of the program's autocast region.
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const auto gradients = differentiate(wanted, tangents);
    const c10::AutoGradMode no_grad(false);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      gradients_[wanted_primals[i]] = &recorder_->node_of(plain_value(gradients[i]));
    }
    add_captures();
    gradients_.resize(joint_.primals.size());
  }

  // A program whose backward raises (`x // y` has no derivative) may still be run forward.
  std::vector<Tensor> differentiate(const std::vector<Tensor>& wanted,
                                    const std::vector<Tensor>& tangents) {
    try {
      return torch::autograd::grad(differentiated_, wanted, tangents, /*retain_graph=*/false,
                                   /*create_graph=*/false, /*allow_unused=*/true);
    } catch (const c10::Error& error) {
      throw TraceError(
          std::string("the program's backward raises: ") + error.what_without_backtrace(),
          "run this part without gradients, or outside of the compiled function");
    }
  }

  Tensor make_tangent(std::size_t index) {
    Tensor plain;
    {
      const aten::NotTracedScope guard;
      plain = at::empty_like(tangent_like_[index]).fill_(1);
    }
    Node& tangent = recorder_->add_input("tangents_" + std::to_string(index + 1), plain);
    tangent.meta.role = graph::InputRole::tangent;
    return functionalization::to_functional_tensor(plain);
  }

  void set_output() {
    graph::Tuple results;
    for (Node* node : forward_outputs_) results.items.emplace_back(node);
    if (joint_.has_backward()) {
      for (const Argument& gradient : gradients_) {
        // The caller copies a gradient that something else holds too, so an alias is not needed.
        Node* node = gradient.node();
        results.items.push_back(node == nullptr ? Argument() : Argument(&without_noops(*node)));
      }
    }
    joint_.graph->set_output(std::move(results));
  }

  void clean_up() {
    // In a graph that changes nothing a copy of a primal is the primal.
    for (std::size_t i = 0; i < primals_.size(); ++i) {
      const TracedPrimal& primal = primals_[i];
      if (joint_.primals[i].shared) continue;  // its inputs are places in the copy
      if (primal.initial == primal.placeholder) continue;
      const std::string_view name = primal.initial->target().base_name();
      if (name != "clone" && name != "_unsafe_view") continue;
      primal.initial->replace_all_uses_with(*primal.placeholder);
      joint_.graph->erase(*primal.initial);
    }
    clean_up_joint(*joint_.graph);
  }

  const TensorFunction& program_;
  const TraceOptions& options_;
  JointGraph joint_;
  std::optional<aten::Recorder> recorder_;
  bool merges_shared_memory_;
  std::vector<TracedPrimal> primals_;
  std::vector<TracedInput> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<Tensor> bases_;  // kept alive: addresses are looked up in value_of_output_
  std::size_t seen_captures_ = 0;
  std::vector<Node*> forward_outputs_;
  std::vector<Tensor> differentiated_;
  std::vector<Tensor> tangent_like_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> value_of_output_;
  std::vector<Argument> gradients_;
  bool is_backward_ = false;
};

}  // namespace

JointGraph trace(const TensorFunction& program, const std::vector<Tensor>& inputs,
                 const TraceOptions& options) {
  const observe::Phase phase("trace_joint", observe::Component::aot);
  try {
    return Trace(program, options, /*merges_shared_memory=*/false).run(inputs);
  } catch (const InputsShareChangedMemory&) {
    return Trace(program, options, /*merges_shared_memory=*/true).run(inputs);
  }
}

}  // namespace assay::autograd
