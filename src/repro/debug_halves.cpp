// The wrapper after aot: the halves of a program and the compiler of each.
#include <ATen/core/Tensor.h>

#include "assay/error.h"
#include "repro/accuracy.h"
#include "repro/debug.h"
#include "repro/watch.h"

namespace assay::repro {

namespace {

using at::Tensor;
using aten::Value;

std::vector<Value> to_values(const std::vector<Tensor>& tensors) {
  std::vector<Value> values;
  values.reserve(tensors.size());
  for (const Tensor& tensor : tensors) values.emplace_back(c10::IValue(tensor));
  return values;
}

backends::Callable as_callable(const autograd::CompiledGraph& compiled) {
  return [&compiled](const std::vector<Value>& inputs) {
    std::vector<Tensor> tensors;
    tensors.reserve(inputs.size());
    for (const Value& input : inputs) tensors.push_back(input.leaf.toTensor());
    std::vector<Value> results;
    for (Tensor& result : compiled(std::move(tensors))) {
      results.push_back(result.defined() ? Value(c10::IValue(std::move(result))) : Value());
    }
    return Value::sequence(Value::Kind::tuple, std::move(results));
  };
}

std::vector<Tensor> run(const Watch& watch, const autograd::CompiledGraph& compiled,
                        std::vector<Tensor> inputs) {
  if (!watch.is_wanted()) return compiled(std::move(inputs));
  const DebugSuspended inside;
  const Snapshot snapshot = watch.remember(to_values(inputs));
  watch.before_run(snapshot);
  try {
    if (watch.config().repro_level == 4) {
      const auto difference =
          find_difference(watch.graph(), as_callable(compiled), to_values(inputs), watch.config(),
                          /*forward_only=*/true);
      if (difference) watch.is_inaccurate(snapshot, *difference);
    }
    return compiled(std::move(inputs));
  } catch (const AccuracyError&) {
    throw;
  } catch (...) {
    watch.failed(snapshot);
    throw;
  }
}

}  // namespace

autograd::GraphCompiler watch_compiler(const DebugConfig& config, std::string backend,
                                       autograd::GraphCompiler compiler) {
  return [config, backend = std::move(backend), compiler = std::move(compiler)](
             std::shared_ptr<const graph::Graph> graph,
             autograd::GraphRole role) -> autograd::CompiledGraph {
    const auto watch =
        std::make_shared<const Watch>(config, graph, Stage::after_aot, backend, to_string(role));
    const DebugSuspended inside;
    const Snapshot shapes = snapshot_of_metadata(*graph);
    watch->before_run(shapes);
    autograd::CompiledGraph compiled;
    try {
      compiled = compiler(std::move(graph), role);
    } catch (const TraceError&) {
      throw;  // the compiler refuses such graphs, and says so
    } catch (...) {
      watch->failed(shapes);
      throw;
    }
    return [watch, compiled = std::move(compiled)](std::vector<Tensor> inputs) {
      return run(*watch, compiled, std::move(inputs));
    };
  };
}

}  // namespace assay::repro
