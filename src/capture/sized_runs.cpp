#include "capture/sized_runs.h"

#include <algorithm>

#include "assay/backend.h"
#include "config/config.h"
#include "graph/graph.h"

namespace assay::capture {

namespace {

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
      any_(plan_as_it_is(plan_.graph)),
      checks_(plan_as_it_is(plan_.checks)),
      probe_(plan_as_it_is(plan_.probe)) {}

bool SizedRuns::note(bool fitted) {
  misfits_ = fitted ? 0 : misfits_ + 1;
  return fitted;
}

std::shared_ptr<SizedRuns::Run> SizedRuns::find(std::span<const c10::IValue> inputs) {
  const auto fits = [&](const std::shared_ptr<Run>& run) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (plan_.is_open[i] && !run->inputs[next++].holds(inputs[i])) return false;
    }
    return true;
  };
  const auto found = std::ranges::find_if(runs_, fits);
  if (found == runs_.end()) return nullptr;
  std::rotate(runs_.begin(), found, found + 1);
  return runs_.front();
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

bool SizedRuns::call_probe(std::span<c10::IValue> inputs, std::vector<std::int64_t>& numbers,
                           Outputs& outputs) const {
  c10::SmallVector<c10::IValue, 16> values;
  probe_->call(inputs, values);
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
  runs_.insert(runs_.begin(), run);
  const auto limit = static_cast<std::size_t>(config::get<"accumulated_cache_size_limit">());
  if (runs_.size() > std::max<std::size_t>(limit, 1)) runs_.pop_back();  // the least used one
  return run;
}

void SizedRuns::add_recorded(std::span<const c10::IValue> inputs,
                             std::shared_ptr<const CompiledGraph> compiled) {
  std::vector<std::int64_t> numbers;
  for (const Number& number : plan_.numbers) numbers.push_back(number.value);
  add(inputs, std::move(numbers))->compiled = std::move(compiled);
}

}  // namespace assay::capture
