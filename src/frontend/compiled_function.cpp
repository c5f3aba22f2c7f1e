#include "frontend/compiled_function.h"

#include "assay/error.h"
#include "aten/runner.h"
#include "graph/print.h"
#include "observe/observe.h"
#include "repro/debug.h"

namespace assay::frontend {

using aten::Value;

CompiledFunction::CompiledFunction(aten::Function function, FunctionOptions options)
    : function_(std::move(function)), options_(std::move(options)) {
  backends::find_backend(
      options_.backend);  // an unknown name is an error now, not at the first call
}

CompiledFunction::CompiledFunction(std::shared_ptr<const graph::Graph> graph,
                                   FunctionOptions options)
    : CompiledFunction([runner = std::make_shared<const aten::GraphRunner>(*graph)](
                           const std::vector<Value>& inputs) { return runner->run(inputs); },
                       std::move(options)) {
  graph_ = std::move(graph);
}

aten::RecordedCalls CompiledFunction::record_for(const std::vector<Value>& inputs) const {
  if (graph_ != nullptr) return {graph_->clone(), {}};
  aten::RecordCallsOptions options;
  options.name = options_.name;
  options.stack = options_.stack;
  options.where = options_.where;
  options.is_held_elsewhere = options_.is_held_elsewhere;
  return aten::record_calls(options_.recorded_as ? options_.recorded_as : function_, inputs,
                            options);
}

std::vector<std::shared_ptr<const CompiledFunction::Entry>> CompiledFunction::entries() const {
  const std::shared_lock lock(entries_mutex_);
  return entries_;
}

std::shared_ptr<const CompiledFunction::Entry> CompiledFunction::find(
    const std::vector<Value>& inputs, const GlobalState& state) const {
  const std::shared_lock lock(entries_mutex_);
  for (const auto& entry : entries_) {
    if (!entry->guards.hold(inputs, state)) continue;
    if (entry->captured_guards && !entry->captured_guards->same_properties(entry->captured)) {
      continue;
    }
    return entry;
  }
  return nullptr;
}

std::shared_ptr<const CompiledFunction::Entry> CompiledFunction::make(
    const std::vector<Value>& inputs) const {
  Entry entry{Guards(inputs), nullptr, {}, {}, std::nullopt};
  const auto log_step = [&](const std::string& what) {
    observe::log(observe::Component::dynamo, observe::Level::info,
                 [&] { return "Step 1: " + what + " " + options_.name; });
  };
  try {
    log_step("torchdynamo start tracing");
    aten::RecordedCalls captured = record_for(inputs);
    log_step("torchdynamo done tracing");
    entry.graph = std::move(captured.graph);
    observe::artifact(observe::Artifact::graph_code, [&] { return graph::print(*entry.graph); });
    for (const at::Tensor& tensor : captured.tensors)
      entry.captured.emplace_back(c10::IValue(tensor));
    if (!entry.captured.empty()) entry.captured_guards.emplace(entry.captured);
    backends::Subject subject{entry.graph, inputs, nullptr};
    subject.inputs.insert(subject.inputs.end(), entry.captured.begin(), entry.captured.end());
    entry.run = repro::compile_with_debug(options_.backend, subject);
  } catch (const TraceError& error) {
    if (!options_.fallback) throw;
    observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
      return "running '" + options_.name + "' eagerly: " + error.detail().message;
    });
    entry.graph = nullptr;
    entry.run = nullptr;
  }
  return std::make_shared<const Entry>(std::move(entry));
}

std::shared_ptr<const CompiledFunction::Entry> CompiledFunction::add(
    const std::vector<Value>& inputs, const GlobalState& state) {
  const std::lock_guard lock(compiling_);
  if (auto found = find(inputs, state)) return found;  // another thread was quicker
  const auto known = entries();
  if (!known.empty()) {
    observe::artifact(observe::Artifact::recompiles, [&] {
      return "recompiling '" + options_.name + "': " + known.back()->guards.failure(inputs, state);
    });
  }
  if (known.size() >= options_.cache_limit) {
    if (!has_warned_.exchange(true)) {
      observe::log(observe::Component::dynamo, observe::Level::warning, [&] {
        return "'" + options_.name + "' was compiled " + std::to_string(known.size()) +
               " times, which is its limit; further inputs run eagerly. Last reason: " +
               known.back()->guards.failure(inputs, state);
      });
    }
    return nullptr;
  }
  auto made = make(inputs);
  const std::unique_lock write(entries_mutex_);
  entries_.push_back(made);
  return made;
}

Value CompiledFunction::run(const Entry& entry, const std::vector<Value>& inputs) const {
  if (!entry.run) return function_(inputs);
  std::vector<Value> all;
  all.reserve(inputs.size() + entry.captured.size());
  all.insert(all.end(), inputs.begin(), inputs.end());
  all.insert(all.end(), entry.captured.begin(), entry.captured.end());
  return entry.run(std::move(all));
}

Value CompiledFunction::call(const std::vector<Value>& inputs) {
  // Inside another program that is being captured: its calls become part of that one's graph.
  if (aten::is_recording_calls())
    return (options_.recorded_as ? options_.recorded_as : function_)(inputs);
  const GlobalState state = GlobalState::current();
  std::shared_ptr<const Entry> entry = find(inputs, state);
  if (entry == nullptr) entry = add(inputs, state);
  return entry == nullptr ? function_(inputs) : run(*entry, inputs);
}

}  // namespace assay::frontend
