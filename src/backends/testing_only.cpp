// Backends with a fault built in, under stock PyTorch's names; any other fault: backends/fault.h.
#include "backends/backends.h"
#include "backends/error.h"
#include "backends/fault.h"

namespace assay::backends {

namespace {

Callable compile_with_faulty_relu(const Subject& subject, FaultKind kind,
                                  std::string_view backend) {
  FaultInjector injector({{"relu", kind}}, backend);
  Subject faulty = subject;
  faulty.graph = injector.inject(subject.graph);
  return compile_eager(faulty);
}

bool calls_anything(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.is_call()) return true;
  }
  return false;
}

}  // namespace

Callable compile_relu_compile_error(const Subject& subject) {
  return compile_with_faulty_relu(subject, FaultKind::compile_error,
                                  "relu_compile_error_TESTING_ONLY");
}

Callable compile_relu_runtime_error(const Subject& subject) {
  return compile_with_faulty_relu(subject, FaultKind::runtime_error,
                                  "relu_runtime_error_TESTING_ONLY");
}

Callable compile_relu_accuracy_error(const Subject& subject) {
  return compile_with_faulty_relu(subject, FaultKind::accuracy, "relu_accuracy_error_TESTING_ONLY");
}

Callable compile_non_leaf_compile_error(const Subject& subject) {
  const auto placeholders = subject.graph->placeholders();
  for (std::size_t i = 0; i < subject.inputs.size() && calls_anything(*subject.graph); ++i) {
    const aten::Value& input = subject.inputs[i];
    if (!input.is_tensor() || !input.leaf.toTensor().defined()) continue;
    const at::Tensor& tensor = input.leaf.toTensor();
    if (tensor.requires_grad() && !tensor.is_leaf()) {
      throw BackendError("non_leaf_compile_error_TESTING_ONLY",
                         "the input '" + placeholders[i]->name() +
                             "' requires grad and is the result of a computation",
                         placeholders[i]->name());
    }
  }
  return compile_eager(subject);
}

}  // namespace assay::backends
