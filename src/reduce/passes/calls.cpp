// Counter-based delta debugging: removes parts of the calls, of a size that only depends on how
// often all of them have been tried (Zhang et al., "Deep Dive into Probabilistic Delta Debugging").
// The last round removes single calls, so that a sweep without success proves 1-minimality.
#include <algorithm>
#include <cmath>

#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

constexpr double kFirstProbability = 0.1;  // that a call is needed, before anything is known
const double kGrowth = 1 / (1 - std::exp(-1.0));

// The size that promises most: the largest s * (1-p)^s.
std::size_t part_size(std::size_t calls, std::size_t round) {
  const double first = std::min(kFirstProbability, 4.0 / static_cast<double>(calls));
  const double probability = first * std::pow(kGrowth, static_cast<double>(round));
  if (probability >= 1) return 1;
  return std::max<std::size_t>(1, static_cast<std::size_t>(-1 / std::log(1 - probability)));
}

std::size_t rounds(const Candidate& program) {
  const std::size_t calls = count_calls(*program.graph);
  if (calls < 2) return 0;
  std::size_t round = 0;
  while (part_size(calls, round) > 1) ++round;
  return round + 1;
}

std::size_t count(const Candidate& program, std::size_t round) {
  const std::size_t calls = count_calls(*program.graph);
  if (calls < 2) return 0;
  const std::size_t size = part_size(calls, round);
  return (calls + size - 1) / size;
}

// Parts are numbered from the end, so that those after a removed one keep their numbers.
std::optional<Candidate> propose_calls(const Candidate& program, std::size_t round,
                                       std::size_t index, repro::ContentStore&) {
  const auto all = atoms(*program.graph);
  const std::size_t size = part_size(all.size(), round);
  const std::size_t end = all.size() - std::min(all.size(), index * size);
  const std::size_t begin = end - std::min(end, size);
  std::set<const graph::Node*> kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < begin || i >= end) kept.insert(all[i].begin(), all[i].end());
  }
  return keep_calls(program, kept);
}

}  // namespace

Proposals passes::calls() { return {&rounds, &count, &propose_calls}; }

}  // namespace assay::reduce
