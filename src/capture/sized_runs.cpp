#include "capture/sized_runs.h"

#include <c10/util/hash.h>

#include <algorithm>

#include "assay/backend.h"
#include "config/config.h"
#include "graph/graph.h"

namespace assay::capture {

namespace {

// Besides those that are compiled: what is known of sizes that came once is small.
constexpr std::size_t kMostRuns = 2048;

// As it is, without what stands around a backend: for any sizes of its inputs.
std::shared_ptr<const CompiledGraph> plan_as_it_is(
    const std::shared_ptr<const graph::Graph>& graph) {
  if (graph == nullptr) return nullptr;
  CompileRequest request;
  request.graph = graph;
  return find_backend("eager")->compile(request);
}

std::int64_t to_number(const c10::IValue& value) {
  return value.isBool() ? std::int64_t{value.toBool()} : value.toInt();
}

}  // namespace

SizedRuns::SizedRuns(Plan plan)
    : plan_(std::move(plan)),
      any_(std::make_unique<Uncompiled>(plan_.graph)),
      checks_(plan_as_it_is(plan_.checks)),
      probe_(plan_.probe == nullptr ? nullptr : std::make_unique<Uncompiled>(plan_.probe)) {}

bool SizedRuns::note(bool fitted) {
  misfits_ = fitted ? 0 : misfits_ + 1;
  return fitted;
}

std::size_t SizedRuns::hash(std::span<const c10::IValue> inputs) const {
  std::size_t combined = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!plan_.is_open[i]) continue;
    const c10::IValue& input = inputs[i];
    if (input.isTensor()) {
      for (const std::int64_t size : input.toTensor().sizes()) {
        combined = c10::hash_combine(combined, static_cast<std::size_t>(size));
      }
    } else {
      combined = c10::hash_combine(combined, input.isDouble()
                                                 ? std::hash<double>()(input.toDouble())
                                                 : std::hash<std::int64_t>()(to_number(input)));
    }
  }
  return combined;
}

std::shared_ptr<SizedRuns::Run> SizedRuns::find(std::span<const c10::IValue> inputs) {
  ++calls_;
  const auto fits = [&](const auto& entry) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (plan_.is_open[i] && !entry.second->inputs[next++].holds(inputs[i])) return false;
    }
    return true;
  };
  const auto [first, last] = runs_.equal_range(hash(inputs));
  const auto found = std::find_if(first, last, fits);
  if (found == last) return nullptr;
  found->second->last_call = calls_;
  return found->second;
}

bool SizedRuns::take(std::span<const c10::IValue> values, bool follow_from_inputs,
                     std::vector<std::int64_t>& numbers) const {
  numbers.resize(plan_.numbers.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Number& number = plan_.numbers[i];
    if (number.follows_from_inputs != follow_from_inputs) continue;
    numbers[i] = to_number(values[next++]);
    if (number.is_expected && numbers[i] != number.value) return false;
  }
  return true;
}

bool SizedRuns::pass_checks(std::span<const c10::IValue> inputs,
                            std::vector<std::int64_t>& numbers) const {
  if (checks_ == nullptr) return true;
  c10::SmallVector<c10::IValue, 16> arguments(inputs.begin(), inputs.end());
  c10::SmallVector<c10::IValue, 16> values;
  checks_->call({arguments.data(), arguments.size()}, values);
  return take({values.data(), values.size()}, true, numbers);
}

void SizedRuns::call(Uncompiled& graph, std::span<c10::IValue> inputs, Outputs& outputs,
                     const CompileParts& compile) {
  std::shared_ptr<const CompiledGraph> in_parts;
  bool is_decided = false;
  {
    const std::scoped_lock lock(graph.mutex);
    if (!graph.is_decided && graph.parts.is_known()) {
      graph.in_parts = compile(graph.parts);
      graph.is_decided = true;
    }
    in_parts = graph.in_parts;
    is_decided = graph.is_decided;
  }
  if (in_parts != nullptr) {
    in_parts->call(inputs, outputs);
  } else if (is_decided) {
    graph.parts.run(inputs, outputs);
  } else {
    graph.parts.observe(inputs, outputs);
  }
}

void SizedRuns::call_any(std::span<c10::IValue> inputs, Outputs& outputs,
                         const CompileParts& compile) {
  call(*any_, inputs, outputs, compile);
}

bool SizedRuns::call_probe(std::span<c10::IValue> inputs, std::vector<std::int64_t>& numbers,
                           Outputs& outputs, const CompileParts& compile) {
  c10::SmallVector<c10::IValue, 16> values;
  call(*probe_, inputs, values, compile);
  const auto count = static_cast<std::size_t>(
      std::ranges::count(plan_.numbers, false, &Number::follows_from_inputs));
  const std::size_t results = values.size() - count;
  if (!take({values.data() + results, count}, false, numbers)) return false;
  for (std::size_t i = 0; i < results; ++i) outputs.push_back(std::move(values[i]));
  return true;
}

std::shared_ptr<SizedRuns::Run> SizedRuns::add(std::span<const c10::IValue> inputs,
                                               std::vector<std::int64_t> numbers) {
  auto run = std::make_shared<Run>();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (plan_.is_open[i]) run->inputs.emplace_back(inputs[i]);
  }
  run->numbers = std::move(numbers);
  run->last_call = calls_;
  if (runs_.size() >= kMostRuns) forget_older_half();
  runs_.emplace(hash(inputs), run);
  return run;
}

void SizedRuns::forget_older_half() {
  std::vector<std::uint64_t> calls;
  for (const auto& [hash, run] : runs_) {
    if (run->compiled == nullptr) calls.push_back(run->last_call);
  }
  if (calls.empty()) return;
  const auto middle = calls.begin() + static_cast<std::ptrdiff_t>(calls.size() / 2);
  std::ranges::nth_element(calls, middle);
  std::erase_if(runs_, [&](const auto& entry) {
    return entry.second->compiled == nullptr && entry.second->last_call <= *middle;
  });
}

int SizedRuns::calls_before_compiling() const {
  const auto sizes = static_cast<int>(runs_.size());
  const auto has_parts_compiled = [](const std::unique_ptr<Uncompiled>& graph) {
    if (graph == nullptr) return false;
    const std::scoped_lock lock(graph->mutex);
    return graph->in_parts != nullptr;
  };
  const bool has_parts = has_parts_compiled(any_) || has_parts_compiled(probe_);
  return has_parts ? 8 + sizes : 1 + sizes / 8;
}

bool SizedRuns::makes_room() {
  const auto limit = std::max<std::int64_t>(config::get<"accumulated_cache_size_limit">(), 1);
  std::int64_t compiled = 0;
  Run* oldest = nullptr;
  for (const auto& [hash, run] : runs_) {
    if (run->compiled == nullptr) continue;
    ++compiled;
    if (oldest == nullptr || run->last_call < oldest->last_call) oldest = run.get();
  }
  if (compiled < limit) return true;
  constexpr std::uint64_t kTurns = 4;
  if (oldest->last_call + kTurns * static_cast<std::uint64_t>(limit) > calls_) return false;
  oldest->compiled = nullptr;
  oldest->calls = 0;
  return true;
}

void SizedRuns::add_recorded(std::span<const c10::IValue> inputs,
                             std::shared_ptr<const CompiledGraph> compiled) {
  std::vector<std::int64_t> numbers;
  for (const Number& number : plan_.numbers) numbers.push_back(number.value);
  add(inputs, std::move(numbers))->compiled = std::move(compiled);
}

}  // namespace assay::capture
