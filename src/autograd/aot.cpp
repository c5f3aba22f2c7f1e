#include "autograd/aot.h"

#include <ATen/SequenceNumber.h>

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

bool apply_decomposition(const c10::OperatorHandle& op, aten::Recorder::Stack& stack) {
  const Decomposition* found = find_decomposition(op.operator_name());
  if (found == nullptr || !can_decompose(stack)) return false;
  found->kernel.callBoxed(op, c10::DispatchKeySet(), &stack);
  return true;
}

std::vector<std::size_t> positions_of_tensors(const std::vector<Value>& inputs) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_tensor() && inputs[i].leaf.toTensor().defined()) positions.push_back(i);
  }
  return positions;
}

std::vector<Tensor> pick_tensors(const std::vector<Value>& inputs,
                                 const std::vector<std::size_t>& positions) {
  std::vector<Tensor> tensors;
  tensors.reserve(positions.size());
  for (std::size_t position : positions) tensors.push_back(inputs[position].leaf.toTensor());
  return tensors;
}

}  // namespace

JointGraph trace_graph(const graph::Graph& graph, const std::vector<Value>& inputs,
                       Structure& results, bool decompose, const graph::python::Source* source) {
  const aten::GraphRunner runner(graph, source);
  const auto positions = positions_of_tensors(inputs);
  Origins origins(graph);
  TraceOptions options;
  options.origins = &origins;
  if (decompose) options.decompose = &apply_decomposition;
  const auto note = [&](const graph::Node& node, const Value&) {
    origins.finish(node, at::sequence_number::peek());
  };
  JointGraph joint = trace(
      [&](const std::vector<Tensor>& tensors) {
        std::vector<Value> values = inputs;
        for (std::size_t i = 0; i < positions.size(); ++i) {
          values[positions[i]] = c10::IValue(tensors[i]);
        }
        std::vector<Tensor> flat;
        results = Structure(runner.run(std::move(values), note), flat);
        return flat;
      },
      pick_tensors(inputs, positions), options);
  observe::artifact(
      joint.has_backward() ? observe::Artifact::aot_joint_graph : observe::Artifact::aot_graphs,
      [&] { return graph::print(*joint.graph); });
  return joint;
}

CompiledGraph run_with_aten(std::shared_ptr<const graph::Graph> graph, GraphRole) {
  auto runner = std::make_shared<const aten::GraphRunner>(*graph);
  return [graph = std::move(graph), runner](std::vector<Tensor> inputs) {
    return runner->run_tensors(std::move(inputs));
  };
}

AotProgram::AotProgram(const graph::Graph& graph, const std::vector<Value>& inputs,
                       const AotOptions& options, const graph::python::Source* source)
    : tensor_inputs_(positions_of_tensors(inputs)) {
  JointGraph joint = trace_graph(graph, inputs, results_, options.decompose, source);
  program_ = std::make_unique<Program>(
      std::move(joint), options.partitioner,
      options.compiler ? options.compiler : GraphCompiler(&run_with_aten));
  if (program_->backward() != nullptr) {
    observe::artifact(observe::Artifact::aot_graphs, [&] {
      return graph::print(program_->forward()) + "\n" + graph::print(*program_->backward());
    });
  }
}

Value AotProgram::run(const std::vector<Value>& inputs) const {
  return results_.fill(program_->run(pick_tensors(inputs, tensor_inputs_)));
}

}  // namespace assay::autograd
