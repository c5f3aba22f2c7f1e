#include "frontend/compiled_function.h"

#include <algorithm>

#include "assay/error.h"
#include "aten/runner.h"
#include "graph/print.h"
#include "guards/cache_limits.h"
#include "observe/observe.h"
#include "repro/debug.h"

namespace assay::frontend {

using aten::Value;

CompiledFunction::CompiledFunction(aten::Function function, FunctionOptions options)
    : function_(std::move(function)), options_(std::move(options)) {
  lists_.push_back(std::make_unique<const Entries>());
  entries_ = lists_.back().get();
}

namespace {

aten::Function run_graph(const graph::Graph& graph, const std::vector<at::Tensor>& bound) {
  const std::vector<c10::IValue> values(bound.begin(), bound.end());
  return [runner = std::make_shared<const aten::GraphRunner>(graph, nullptr, values)](
             const std::vector<Value>& inputs) { return runner->run(inputs); };
}

}  // namespace

CompiledFunction::CompiledFunction(std::shared_ptr<const graph::Graph> graph,
                                   FunctionOptions options, std::vector<at::Tensor> bound)
    : CompiledFunction(run_graph(*graph, bound), std::move(options)) {
  graph_ = std::move(graph);
  bound_ = std::move(bound);
}

void CompiledFunction::prepare(std::span<const c10::IValue> inputs) {
  const guards::GlobalState state = guards::GlobalState::current();
  if (find(inputs, state) == nullptr) add(inputs, state);
}

aten::RecordedCalls CompiledFunction::record_for(std::span<const c10::IValue> inputs) const {
  if (graph_ != nullptr) return {graph_->clone(), bound_};
  aten::RecordCallsOptions options;
  options.name = options_.name;
  options.stack = options_.stack;
  options.where = options_.where;
  options.is_held_elsewhere = options_.is_held_elsewhere;
  return aten::record_calls(options_.recorded_as ? options_.recorded_as : function_,
                            aten::unpack_values(inputs), options);
}

const CompiledFunction::Entry* CompiledFunction::find(std::span<const c10::IValue> inputs,
                                                      const guards::GlobalState& state) const {
  for (const auto& entry : entries()) {
    if (!entry->guards.hold(inputs, state)) continue;
    if (entry->captured_guards && !entry->captured_guards->same_properties(entry->captured)) {
      continue;
    }
    return entry.get();
  }
  return nullptr;
}

std::shared_ptr<CompiledFunction::Entry> CompiledFunction::make(
    std::span<const c10::IValue> inputs) const {
  auto entry = std::make_shared<Entry>(Entry{guards::Guards(inputs)});
  const auto log_step = [&](const std::string& what) {
    observe::log(observe::Component::dynamo, observe::Level::info,
                 [&] { return "Step 1: " + what + " " + options_.name; });
  };
  try {
    log_step("torchdynamo start tracing");
    aten::RecordedCalls recorded = record_for(inputs);
    log_step("torchdynamo done tracing");
    entry->graph = std::move(recorded.graph);
    observe::artifact(observe::Artifact::graph_code, [&] { return graph::print(*entry->graph); });
    for (at::Tensor& tensor : recorded.tensors) entry->captured.emplace_back(std::move(tensor));
    if (!entry->captured.empty()) entry->captured_guards.emplace(entry->captured);
    entry->structure = aten::ResultStructure(entry->graph->output()->args()[0]);
    CompileRequest request;
    request.graph = entry->graph;
    request.inputs.assign(inputs.begin(), inputs.end());
    request.inputs.insert(request.inputs.end(), entry->captured.begin(), entry->captured.end());
    request.bound_inputs = entry->captured.size();
    request.options = options_.backend_options;
    entry->compiled = repro::compile_with_debug(*options_.backend, std::move(request));
  } catch (const TraceError& error) {
    if (!options_.fallback) throw;
    observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
      return "running '" + options_.name + "' eagerly: " + error.detail().message;
    });
    entry->graph = nullptr;
    entry->compiled = nullptr;
  }
  return entry;
}

bool CompiledFunction::is_full(bool is_for_other_size) const {
  const Entries& known = entries();
  const auto for_other_sizes =
      std::ranges::count_if(known, [](const auto& entry) { return entry->is_for_other_size; });
  return guards::reached_limit(
             {known.size(), static_cast<std::size_t>(for_other_sizes), is_for_other_size},
             options_.cache_limit)
      .has_value();
}

bool CompiledFunction::come_first(std::span<const c10::IValue> inputs,
                                  const guards::GlobalState& state) {
  constexpr std::size_t kMostRemembered = 64;
  const auto found = std::ranges::find_if(
      came_once_, [&](const guards::Guards& guards) { return guards.hold(inputs, state); });
  if (found != came_once_.end()) {
    came_once_.erase(found);
    return false;
  }
  came_once_.emplace_back(inputs);
  if (came_once_.size() > kMostRemembered) came_once_.pop_front();
  return true;
}

const CompiledFunction::Entry* CompiledFunction::add(std::span<const c10::IValue> inputs,
                                                     const guards::GlobalState& state) {
  const std::lock_guard lock(compiling_);
  if (const Entry* found = find(inputs, state)) return found;  // another thread was quicker
  const Entries& known = entries();
  if (!known.empty()) {
    observe::artifact(observe::Artifact::recompiles, [&] {
      return "recompiling '" + options_.name + "': " + known.back()->guards.failure(inputs, state);
    });
  }
  const bool is_for_other_size =
      !known.empty() && known.back()->guards.meet_other_sizes(inputs, state);
  if (is_full(is_for_other_size)) {
    if (!has_warned_.exchange(true)) {
      observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
        return "'" + options_.name + "' was compiled " + std::to_string(known.size()) +
               " times, which is its limit; further inputs run eagerly. Last reason: " +
               known.back()->guards.failure(inputs, state);
      });
    }
    return nullptr;
  }
  constexpr std::size_t kCompiledAtOnce = 2;
  if (graph_ != nullptr && is_for_other_size && known.size() >= kCompiledAtOnce &&
      come_first(inputs, state)) {
    return nullptr;
  }
  auto longer = std::make_unique<Entries>(known);
  auto made = make(inputs);
  made->is_for_other_size = is_for_other_size;
  longer->push_back(std::move(made));
  lists_.push_back(std::move(longer));
  entries_.store(lists_.back().get(), std::memory_order_release);
  return lists_.back()->back().get();
}

const aten::ResultStructure& CompiledFunction::run_eagerly(const aten::Function& function,
                                                           std::span<c10::IValue> inputs,
                                                           Outputs& outputs) const {
  static const aten::ResultStructure one_value;
  outputs.push_back(aten::pack_value(function(aten::unpack_values(inputs))));
  return one_value;
}

const aten::ResultStructure& CompiledFunction::call(std::span<c10::IValue> inputs,
                                                    Outputs& outputs) {
  // Inside another program that is being recorded: its calls become part of that one's graph.
  if (aten::is_recording_calls()) {
    return run_eagerly(options_.recorded_as ? options_.recorded_as : function_, inputs, outputs);
  }
  const guards::GlobalState state = guards::GlobalState::current();
  const Entry* entry = find(inputs, state);
  if (entry == nullptr) entry = add(inputs, state);
  if (entry == nullptr || entry->compiled == nullptr) {
    return run_eagerly(function_, inputs, outputs);
  }
  entry->compiled->call(inputs, outputs);
  return entry->structure;
}

}  // namespace assay::frontend
