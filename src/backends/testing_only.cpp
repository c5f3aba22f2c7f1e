// Backends with a fault built in, under stock PyTorch's names; any other fault: backends/fault.h.
#include "backends/backends.h"
#include "backends/error.h"
#include "backends/fault.h"

namespace assay::backends {

namespace {

CompiledPointer compile_with_faulty_relu(const CompileRequest& request, FaultKind kind) {
  FaultInjector injector({{"relu", kind}}, request.context->backend);
  CompileRequest faulty = request;
  faulty.graph = injector.inject(request.graph);
  return compile_eager(faulty);
}

bool calls_anything(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.is_call()) return true;
  }
  return false;
}

}  // namespace

CompiledPointer compile_relu_compile_error(const CompileRequest& request) {
  return compile_with_faulty_relu(request, FaultKind::compile_error);
}

CompiledPointer compile_relu_runtime_error(const CompileRequest& request) {
  return compile_with_faulty_relu(request, FaultKind::runtime_error);
}

CompiledPointer compile_relu_accuracy_error(const CompileRequest& request) {
  return compile_with_faulty_relu(request, FaultKind::accuracy);
}

CompiledPointer compile_non_leaf_compile_error(const CompileRequest& request) {
  const auto placeholders = request.graph->placeholders();
  for (std::size_t i = 0; i < request.inputs.size() && calls_anything(*request.graph); ++i) {
    const c10::IValue& input = request.inputs[i];
    if (!input.isTensor() || !input.toTensor().defined()) continue;
    const at::Tensor& tensor = input.toTensor();
    if (tensor.requires_grad() && !tensor.is_leaf()) {
      throw BackendError(
          request.context->backend,
          "the input '" + placeholders[i]->name() + "' requires grad and is not a leaf",
          placeholders[i]->name());
    }
  }
  return compile_eager(request);
}

}  // namespace assay::backends
