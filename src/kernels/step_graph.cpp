#include "kernels/step_graph.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "assay/error.h"
#include "aten/operator_record.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

// A search that takes longer than this is given up: the answer "maybe" costs a fusion, not time.
constexpr std::size_t kMostVisits = 400;

bool is_ordered_call(const Step& step) {
  const auto* call = std::get_if<ExternCall>(&step);
  return call != nullptr && !aten::operator_record(*call->node).is_pure;
}

// The calls whose results a call takes as values: numbers, lists of tensors, items of one.
void add_values(const ExternCall& call,
                const std::unordered_map<const graph::Node*, std::size_t>& calls,
                std::vector<std::size_t>& before) {
  for (const auto& operand : call.operands) {
    const auto* node = std::get_if<const graph::Node*>(&operand);
    if (node == nullptr) continue;
    auto found = calls.find(*node);
    if (found == calls.end() && (*node)->calls("operator.getitem")) {
      found = calls.find((*node)->args()[0].node());
    }
    if (found != calls.end()) before.push_back(found->second);
  }
}

}  // namespace

StepGraph::StepGraph(const LoopProgram& program) : groups_(program.steps.size()) {
  struct BufferState {
    std::optional<std::size_t> writer;
    std::vector<std::size_t> readers;  // since it was written
  };
  // Buffers that may be the same memory are one: a `result` and what it may be a view of.
  std::vector<BufferId> memory(program.buffers.size());
  for (BufferId id = 0; id < program.buffers.size(); ++id) memory[id] = id;
  const std::function<BufferId(BufferId)> root = [&](BufferId id) {
    while (memory[id] != id) id = memory[id];
    return id;
  };
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    for (BufferId base : program.buffers[id].aliases) {
      if (base != kNoBuffer) memory[root(id)] = root(base);
    }
  }
  std::vector<BufferState> states(program.buffers.size());
  std::unordered_map<const graph::Node*, std::size_t> calls;
  std::optional<std::size_t> last_ordered;
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    Group& group = groups_[step];
    group.parent = group.first = step;
    rank_.push_back(step);
    by_rank_.push_back(step);
    const StepUses uses = uses_of(program.steps[step]);
    for (BufferId buffer : uses.reads) {
      BufferState& state = states[root(buffer)];
      if (state.writer && *state.writer != step) group.before.push_back(*state.writer);
      state.readers.push_back(step);
    }
    for (BufferId buffer : uses.writes) {
      BufferState& state = states[root(buffer)];
      if (state.writer && *state.writer != step) group.before.push_back(*state.writer);
      for (std::size_t reader : state.readers) {
        if (reader != step) group.before.push_back(reader);
      }
      state.readers.clear();
      state.writer = step;
    }
    if (const auto* call = std::get_if<ExternCall>(&program.steps[step])) {
      add_values(*call, calls, group.before);
      calls.emplace(call->node, step);
    }
    if (is_ordered_call(program.steps[step])) {
      if (last_ordered) group.before.push_back(*last_ordered);
      last_ordered = step;
    }
  }
}

std::size_t StepGraph::find(std::size_t step) const {
  while (groups_[step].parent != step) {
    groups_[step].parent = groups_[groups_[step].parent].parent;
    step = groups_[step].parent;
  }
  return step;
}

bool StepGraph::waits_for(std::size_t step, std::size_t other) const {
  other = find(other);
  return std::ranges::any_of(groups_[find(step)].before,
                             [&](std::size_t before) { return find(before) == other; });
}

bool StepGraph::has_path_between(std::size_t from, std::size_t to) const {
  from = find(from);
  to = find(to);
  std::unordered_set<std::size_t> seen;
  std::vector<std::size_t> waiting;
  const auto visit_before = [&](std::size_t group) {
    for (std::size_t before : groups_[group].before) {
      const std::size_t found = find(before);
      if (found == group || rank_[found] < rank_[from]) continue;
      if (found == from && group == to) continue;  // no third step
      if (seen.insert(found).second) waiting.push_back(found);
    }
  };
  visit_before(to);
  while (!waiting.empty()) {
    if (seen.size() > kMostVisits) return true;
    const std::size_t group = waiting.back();
    waiting.pop_back();
    if (group == from) return true;
    visit_before(group);
  }
  return false;
}

// By rank, from `lowest` on: the group must run before one of the two.
std::vector<bool> StepGraph::find_ancestors(std::size_t first, std::size_t second,
                                            std::size_t lowest) const {
  std::vector<bool> is_ancestor(std::max(rank_[first], rank_[second]) - lowest + 1, false);
  std::vector<std::size_t> waiting = {first, second};
  while (!waiting.empty()) {
    const std::size_t group = waiting.back();
    waiting.pop_back();
    for (std::size_t before : groups_[group].before) {
      const std::size_t found = find(before);
      if (rank_[found] < lowest || found == first || found == second) continue;
      if (is_ancestor[rank_[found] - lowest]) continue;
      is_ancestor[rank_[found] - lowest] = true;
      waiting.push_back(found);
    }
  }
  return is_ancestor;
}

void StepGraph::join(std::size_t first, std::size_t second) {
  first = find(first);
  second = find(second);
  const std::size_t lowest = std::min(rank_[first], rank_[second]);
  const std::size_t highest = std::max(rank_[first], rank_[second]);
  const std::vector<bool> is_ancestor = find_ancestors(first, second, lowest);
  // Between their ranks: what must run before either, then they, then everything else.
  std::vector<std::size_t> ranked;
  const auto add_all = [&](bool wanted) {
    for (std::size_t rank = lowest; rank <= highest; ++rank) {
      const std::size_t group = by_rank_[rank];
      const bool is_other = group != kNoGroup && group != first && group != second;
      if (is_other && is_ancestor[rank - lowest] == wanted) ranked.push_back(group);
    }
  };
  add_all(true);
  ranked.push_back(first);
  add_all(false);
  for (std::size_t rank = lowest; rank <= highest; ++rank) {
    const std::size_t place = rank - lowest;
    by_rank_[rank] = place < ranked.size() ? ranked[place] : kNoGroup;
    if (place < ranked.size()) rank_[ranked[place]] = rank;
  }
  Group& into = groups_[first];
  Group& from = groups_[second];
  from.parent = first;
  into.first = std::min(into.first, from.first);
  into.before.insert(into.before.end(), from.before.begin(), from.before.end());
  from.before.clear();
}

std::vector<std::size_t> StepGraph::order() const {
  std::vector<std::vector<std::size_t>> after(groups_.size());
  std::vector<std::size_t> missing(groups_.size(), 0);
  for (std::size_t step = 0; step < groups_.size(); ++step) {
    if (find(step) != step) continue;
    std::vector<std::size_t> before;
    for (std::size_t other : groups_[step].before) {
      if (find(other) != step) before.push_back(find(other));
    }
    std::ranges::sort(before);
    const auto repeated = std::ranges::unique(before);
    before.erase(repeated.begin(), repeated.end());
    missing[step] = before.size();
    for (std::size_t other : before) after[other].push_back(step);
  }
  using Entry = std::pair<std::size_t, std::size_t>;  // the first of its steps, the group
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::size_t count = 0;
  for (std::size_t step = 0; step < groups_.size(); ++step) {
    if (find(step) != step) continue;
    ++count;
    if (missing[step] == 0) ready.emplace(groups_[step].first, step);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t step = ready.top().second;
    ready.pop();
    order.push_back(step);
    for (std::size_t next : after[step]) {
      if (--missing[next] == 0) ready.emplace(groups_[next].first, next);
    }
  }
  internal_check(order.size() == count, "no two steps wait for each other");
  return order;
}

}  // namespace assay::kernels
