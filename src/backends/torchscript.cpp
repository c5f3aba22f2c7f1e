// The backends that hand graphs to TorchScript's executor. In stock PyTorch 2.13 both raise.
// TorchScript optimises by itself: it splits addmm, for one, which shows in the last bits of bf16.
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "aten/runner.h"
#include "backends/aot.h"
#include "backends/backends.h"
#include "backends/error.h"
#include "backends/lower.h"
#include "backends/torchscript_graph.h"
#include "observe/observe.h"

namespace assay::backends {

namespace {

// A graph in TorchScript, and what its results are put together to.
class TorchScriptGraphProgram : public CompiledGraph {
 public:
  explicit TorchScriptGraphProgram(const CompileRequest& request)
      : backend_(request.context->backend),
        input_count_(request.inputs.size() - request.bound_inputs),
        bound_(request.inputs.begin() + static_cast<std::ptrdiff_t>(input_count_),
               request.inputs.end()) {
    const graph::Graph& graph = *request.graph;
    TorchScriptGraph converted = to_torchscript(graph, backend_);
    inputs_ = std::move(converted.inputs);
    output_count_ = converted.outputs.size();
    observe::log(observe::Component::backends, observe::Level::debug,
                 [&] { return "TorchScript graph:\n" + converted.graph->toString(); });
    executor_ = torch::jit::GraphExecutor(converted.graph, graph.name());
    make_results(graph, converted.outputs);
  }

  void call(std::span<c10::IValue> inputs, Outputs& outputs) const override {
    torch::jit::Stack stack;
    for (std::size_t position : inputs_) {
      const bool is_bound = position >= input_count_;
      stack.push_back(is_bound ? bound_[position - input_count_] : inputs[position]);
    }
    try {
      executor_.run(stack);
    } catch (const c10::Error& error) {
      throw BackendError(backend_, error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw BackendError(backend_, error.what());
    }
    results_runner_->call(std::span(stack).first(output_count_), outputs);
  }

 private:
  // The output alone, as a graph that takes what it mentions.
  void make_results(const graph::Graph& graph, const std::vector<const graph::Node*>& outputs) {
    std::unordered_map<const graph::Node*, graph::Node*> twins;
    for (const graph::Node* node : outputs) twins[node] = &results_->placeholder(node->name());
    results_->set_output(graph.output()->args()[0].map_nodes(
        [&](graph::Node& node) -> graph::Argument { return twins.at(&node); }));
    results_runner_ = std::make_unique<aten::GraphRunner>(*results_);
  }

  std::string backend_;
  std::size_t input_count_;
  std::vector<c10::IValue> bound_;
  std::vector<std::size_t> inputs_;
  std::size_t output_count_ = 0;
  mutable torch::jit::GraphExecutor executor_;  // locks by itself
  std::unique_ptr<graph::Graph> results_ = std::make_unique<graph::Graph>();
  std::unique_ptr<aten::GraphRunner> results_runner_;
};

// A backward graph may be compiled before it has inputs: then nothing is bound.
CompiledPointer compile_with_torchscript(const CompileRequest& request) {
  CompileRequest complete = request;
  complete.inputs.resize(request.graph->placeholders().size());
  return std::make_shared<const TorchScriptGraphProgram>(complete);
}

}  // namespace

CompiledPointer compile_ts(const CompileRequest& request) {
  return compile_with_torchscript(lower(request));
}

CompiledPointer compile_aot_ts(const CompileRequest& request) {
  return compile_ahead_of_time(request, {.partitioner = &autograd::partition_default,
                                         .compiler = &compile_with_torchscript});
}

}  // namespace assay::backends
