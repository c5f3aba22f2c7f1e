#include "autograd/aot.h"

#include <ATen/SequenceNumber.h>

#include <algorithm>

#include "assay/error.h"
#include "aten/autocast_regions.h"
#include "aten/facts.h"
#include "aten/operator_record.h"
#include "aten/runner.h"
#include "autograd/decompositions.h"
#include "autograd/origins.h"
#include "autograd/trace.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::autograd {

namespace {

using at::Tensor;
using aten::Value;

bool apply_decomposition(const c10::OperatorHandle& op, aten::Recorder::Stack& stack,
                         graph::PassContext& context) {
  const Decomposition* found = find_decomposition(op.operator_name());
  if (found == nullptr || !can_decompose(*found, stack) || !context.may_apply()) return false;
  found->kernel.callBoxed(op, c10::DispatchKeySet(), &stack);
  return true;
}

std::vector<std::size_t> positions_of_tensors(const std::vector<c10::IValue>& inputs) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isTensor() && inputs[i].toTensor().defined()) positions.push_back(i);
  }
  return positions;
}

std::vector<Tensor> pick_tensors(const std::vector<c10::IValue>& inputs,
                                 const std::vector<std::size_t>& positions) {
  std::vector<Tensor> tensors;
  tensors.reserve(positions.size());
  for (std::size_t position : positions) tensors.push_back(inputs[position].toTensor());
  return tensors;
}

// Functionalization knows what PyTorch's own operators write to; a library's operator that writes
// to its arguments cannot be traced.
void check_no_foreign_writes(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.op() != graph::Op::call_function) continue;
    const std::string_view name = node.target().name();
    constexpr std::string_view prefix = "torch.ops.";
    if (!name.starts_with(prefix)) continue;
    const std::string_view op = name.substr(prefix.size());
    if (op.starts_with("aten.") || op.starts_with("prims.")) continue;
    if (!aten::operator_record(node).writes.empty()) {
      throw TraceError("'" + std::string(name) + "' writes to its arguments, and is not PyTorch's",
                       "backend 'eager' runs it");
    }
  }
}

// Inputs that are not tensors are constants of the compiled graph.
void check_no_tensors_inside(const std::vector<c10::IValue>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isTensor()) continue;
    std::vector<Tensor> inside;
    const Structure structure(aten::unpack_value(inputs[i]), inside);
    if (!inside.empty()) {
      throw TraceError("input " + std::to_string(i) + " holds tensors, and is not one",
                       "make each of them an input, or use backend 'eager'");
    }
  }
}

// The tensors of a trace have no memory that an operator could look into.
void run_without_memory(const aten::GraphRunner& runner, std::span<c10::IValue> inputs,
                        Outputs& outputs, const aten::NodeObserver& observer) {
  try {
    runner.call(inputs, outputs, observer);
  } catch (const aten::OperatorError& error) {
    if (std::string_view(error.what()).find("its data is not allocated yet") ==
        std::string_view::npos) {
      throw;
    }
    throw TraceError(std::string("an operator looks into a tensor's memory: ") + error.what(),
                     "backend 'eager' runs it");
  }
}

// The captured graph as a program of tensors; the numbers among its inputs are those of the
// request.
class FlatProgram {
 public:
  explicit FlatProgram(const CompileRequest& request)
      : graph_(request.graph),
        runner_(*request.graph, request.context->source),
        inputs_(request.inputs),
        positions_(positions_of_tensors(request.inputs)) {
    for (const std::size_t position : positions_) inputs_[position] = c10::IValue();
  }

  /// The tensors of its results; `structures`, if not null, gets the structure of each.
  std::vector<Tensor> run(const std::vector<Tensor>& tensors, std::vector<Structure>* structures,
                          const aten::NodeObserver& observer = {}) const {
    std::vector<c10::IValue> inputs = inputs_;
    for (std::size_t i = 0; i < positions_.size(); ++i) inputs[positions_[i]] = tensors[i];
    c10::SmallVector<c10::IValue, 8> leaves;
    run_without_memory(runner_, inputs, leaves, observer);
    std::vector<Tensor> flat;
    for (c10::IValue& leaf : leaves) {
      Structure structure(aten::unpack_value(std::move(leaf)), flat);
      if (structures != nullptr) structures->push_back(std::move(structure));
    }
    return flat;
  }

  /// A generator of the program's own is not restored before it runs once more.
  bool has_generators() const {
    return std::ranges::any_of(inputs_, [](const c10::IValue& v) { return v.isGenerator(); });
  }

 private:
  std::shared_ptr<const graph::Graph> graph_;
  aten::GraphRunner runner_;
  std::vector<c10::IValue> inputs_;  // None where a tensor belongs
  std::vector<std::size_t> positions_;
};

JointGraph trace_graph(const CompileRequest& request, const FlatProgram& program,
                       std::vector<Structure>& results, bool decompose) {
  check_no_foreign_writes(*request.graph);
  check_no_tensors_inside(request.inputs);
  const aten::AutocastScope regions;
  Origins origins(*request.graph);
  TraceOptions options;
  options.origins = &origins;
  const auto pass_options = aten::pass_options();
  graph::RunningPass decompositions("decompositions", pass_options,
                                    graph::RunningPass::Timing::outer);
  if (decompose && decompositions.is_enabled()) {
    options.decompose = [&](const c10::OperatorHandle& op, aten::Recorder::Stack& stack) {
      return apply_decomposition(op, stack, decompositions.context());
    };
  }
  const auto note = [&](const graph::Node& node, const Value&) {
    origins.finish(node, at::sequence_number::peek());
  };
  JointGraph joint = trace(
      [&](const std::vector<Tensor>& tensors) {
        results.clear();  // a trace may run its program twice
        return program.run(tensors, &results, note);
      },
      pick_tensors(request.inputs, positions_of_tensors(request.inputs)), options);
  const graph::Graph* made[] = {joint.graph.get()};
  decompositions.finish(made);
  observe::artifact(
      joint.has_backward() ? observe::Artifact::aot_joint_graph : observe::Artifact::aot_graphs,
      [&] { return graph::print(*joint.graph); });
  return joint;
}

}  // namespace

AotGraph::AotGraph(const CompileRequest& request, const AotOptions& options)
    : input_count_(request.inputs.size() - request.bound_inputs),
      tensor_inputs_(positions_of_tensors(request.inputs)),
      bound_(request.inputs.begin() + static_cast<std::ptrdiff_t>(input_count_),
             request.inputs.end()) {
  takes_tensors_ = bound_.empty() && tensor_inputs_.size() == input_count_;
  const auto program = std::make_shared<const FlatProgram>(request);
  JointGraph joint = trace_graph(request, *program, results_, options.decompose);
  returns_tensors_ = std::ranges::all_of(results_, &Structure::is_one_tensor);
  HalvesOptions halves;
  halves.partitioner = options.partitioner;
  halves.compiler = options.compiler ? options.compiler : Compiler(&aten::run_with_aten);
  halves.context = request.context;
  halves.options = request.options;
  halves.lazy_backward = options.lazy_backward;
  if (!program->has_generators()) {
    halves.program = [program](const std::vector<Tensor>& inputs) {
      return program->run(inputs, nullptr);
    };
  }
  halves_ = std::make_unique<CompiledHalves>(std::move(joint),
                                             pick_tensors(request.inputs, tensor_inputs_), halves);
  if (halves_->backward() != nullptr) {
    observe::artifact(observe::Artifact::aot_graphs, [&] {
      return graph::print(halves_->forward()) + "\n" + graph::print(*halves_->backward());
    });
  }
}

void AotGraph::fill_results(std::span<c10::IValue> tensors, Outputs& outputs) const {
  for (const Structure& result : results_) {
    if (result.is_one_tensor()) {
      outputs.push_back(std::move(tensors.front()));
    } else {
      outputs.push_back(aten::pack_value(result.fill(tensors.first(result.tensor_count()))));
    }
    tensors = tensors.subspan(result.tensor_count());
  }
}

void AotGraph::call(std::span<c10::IValue> inputs, Outputs& outputs) const {
  if (inputs.size() != input_count_) {
    throw UserError("the graph takes " + std::to_string(input_count_) + " inputs, " +
                    std::to_string(inputs.size()) + " given");
  }
  c10::SmallVector<c10::IValue, 8> gathered;
  if (!takes_tensors_) {
    for (std::size_t position : tensor_inputs_) {
      if (position < input_count_) {
        gathered.push_back(std::move(inputs[position]));
      } else {
        gathered.push_back(bound_[position - input_count_]);
      }
    }
    inputs = gathered;
  }
  if (returns_tensors_) {
    halves_->call(inputs, outputs);
    return;
  }
  c10::SmallVector<c10::IValue, 8> tensors;
  halves_->call(inputs, tensors);
  fill_results(tensors, outputs);
}

}  // namespace assay::autograd
