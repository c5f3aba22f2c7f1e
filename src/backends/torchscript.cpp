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
class TorchScriptProgram {
 public:
  TorchScriptProgram(const graph::Graph& graph, std::string_view backend) : backend_(backend) {
    TorchScriptGraph converted = to_torchscript(graph, backend);
    inputs_ = std::move(converted.inputs);
    output_count_ = converted.outputs.size();
    observe::log(observe::Component::backends, observe::Level::debug,
                 [&] { return "TorchScript graph:\n" + converted.graph->toString(); });
    executor_ = torch::jit::GraphExecutor(converted.graph, graph.name());
    make_results(graph, converted.outputs);
  }

  aten::Value run(const std::vector<aten::Value>& inputs) const {
    return results_runner_->run(execute(inputs));
  }

  std::vector<at::Tensor> run_tensors(const std::vector<at::Tensor>& inputs) const {
    std::vector<at::Tensor> outputs;
    for (const aten::Value& value : execute({inputs.begin(), inputs.end()})) {
      outputs.push_back(value.leaf.toTensor());
    }
    return results_runner_->run_tensors(std::move(outputs));
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

  std::vector<aten::Value> execute(const std::vector<aten::Value>& inputs) const {
    torch::jit::Stack stack;
    for (std::size_t position : inputs_) stack.push_back(inputs.at(position).leaf);
    try {
      executor_.run(stack);
    } catch (const c10::Error& error) {
      throw BackendError(backend_, error.what_without_backtrace());
    } catch (const std::exception& error) {
      throw BackendError(backend_, error.what());
    }
    return {stack.begin(), stack.begin() + static_cast<std::ptrdiff_t>(output_count_)};
  }

  std::string_view backend_;
  std::vector<std::size_t> inputs_;
  std::size_t output_count_ = 0;
  mutable torch::jit::GraphExecutor executor_;  // locks by itself
  std::unique_ptr<graph::Graph> results_ = std::make_unique<graph::Graph>();
  std::unique_ptr<aten::GraphRunner> results_runner_;
};

autograd::CompiledGraph compile_half(const std::shared_ptr<const graph::Graph>& graph,
                                     autograd::GraphRole) {
  auto program = std::make_shared<const TorchScriptProgram>(*graph, "aot_ts");
  return [program](const std::vector<at::Tensor>& inputs) { return program->run_tensors(inputs); };
}

}  // namespace

Callable compile_ts(const Subject& subject) {
  Lowered lowered = lower(subject);
  auto program = std::make_shared<const TorchScriptProgram>(*lowered.graph, "ts");
  return [lowered = std::move(lowered), program](std::vector<aten::Value> inputs) {
    return program->run(lowered.with_captured(std::move(inputs)));
  };
}

Callable compile_aot_ts(const Subject& subject) {
  return compile_ahead_of_time(
      subject, {.partitioner = &autograd::partition_default, .compiler = &compile_half});
}

}  // namespace assay::backends
