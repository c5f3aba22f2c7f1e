// Lets the readers of a call read one of its operands instead: many calls at first, then one by one
// with each of their operands. A wrong value stays on its way where removing a call would replace
// it by the right one.
#include <algorithm>

#include "reduce/bypass.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

using graph::Node;

struct BypassedCall {
  const Node* call = nullptr;
  const Node* operand = nullptr;
  const Node* beyond = nullptr;  // the operand is bypassed too, and this is its operand
};

std::set<const Node*> carriers(const Candidate& program) {
  if (!program.ends || program.ends->wrong.empty()) return {};
  const Node* wrong = program.graph->find(program.ends->wrong.front().node);
  return wrong == nullptr ? std::set<const Node*>() : dependents_of(*program.graph, *wrong);
}

// Where the failure is known to begin or to show, bypassing is tried last.
bool is_end(const Candidate& program, const Node& call) {
  if (std::ranges::find(program.suspects, call.name()) != program.suspects.end()) return true;
  return program.ends && program.ends->has(call.name());
}

std::vector<BypassedCall> between(const Candidate& program) {
  std::vector<BypassedCall> found;
  const auto carrying = carriers(program);
  for (const Atom& atom : atoms(*program.graph)) {
    if (is_end(program, *atom.front())) continue;
    const auto operands = operands_of(program, *atom.front(), carrying);
    if (!operands.empty()) found.push_back({atom.front(), operands.front()});
  }
  return found;
}

// Each with each operand, and together with an operand: of two bridges one may be enough. They are
// tried from the end.
std::vector<BypassedCall> one_by_one(const Candidate& program) {
  std::vector<BypassedCall> found;
  const auto carrying = carriers(program);
  for (const Atom& atom : atoms(*program.graph)) {
    auto operands = operands_of(program, *atom.front(), carrying);
    std::ranges::reverse(operands);
    for (const Node* operand : operands) {
      if (!operand->is_call()) continue;
      const auto further = operands_of(program, *operand, carrying);
      if (!further.empty()) found.push_back({atom.front(), operand, further.front()});
    }
    for (const Node* operand : operands) found.push_back({atom.front(), operand});
  }
  return found;
}

// Rounds: all calls at once, half of them, a quarter, ... and at last each with each operand.
constexpr std::size_t kPartRounds = 12;

std::size_t bypass_part(std::size_t calls, std::size_t round) { return calls >> round; }

std::size_t bypass_rounds(const Candidate& program) {
  const bool can_be_smaller = program.values != nullptr && count_calls(*program.graph) >= 2;
  return can_be_smaller ? kPartRounds + 1 : 0;
}

std::size_t bypass_count(const Candidate& program, std::size_t round) {
  if (round == kPartRounds) return one_by_one(program).size();
  const std::size_t calls = between(program).size();
  const std::size_t size = bypass_part(calls, round);
  return size < 2 ? 0 : (calls + size - 1) / size;
}

// Parts are numbered from the end, so that those after a bypassed one keep their numbers.
std::optional<Candidate> propose_bypass(const Candidate& program, std::size_t round,
                                        std::size_t index, repro::ContentStore&) {
  const bool is_single = round == kPartRounds;
  const std::vector<BypassedCall> all = is_single ? one_by_one(program) : between(program);
  const std::size_t size = is_single ? 1 : bypass_part(all.size(), round);
  const std::size_t end = all.size() - std::min(all.size(), index * size);
  const std::size_t begin = end - std::min(end, size);
  Bypasses calls;
  for (std::size_t i = begin; i < end; ++i) {
    calls.emplace(all[i].call, all[i].operand);
    if (all[i].beyond != nullptr) calls.emplace(all[i].operand, all[i].beyond);
  }
  if (calls.empty()) return std::nullopt;
  return bypass(program, calls);
}

}  // namespace

Proposals passes::bypass() { return {&bypass_rounds, &bypass_count, &propose_bypass}; }

}  // namespace assay::reduce
