#include "kernels/merge_pair.h"

#include <algorithm>
#include <vector>

#include "assay/error.h"
#include "kernels/combine_passes.h"
#include "kernels/index_map.h"
#include "kernels/loop_edit.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

constexpr std::size_t kMostMergedInstructions = 600;
// A pass over fewer points than this is not worth its loop.
constexpr std::int64_t kShortestRow = 8;
// With fewer rows than this, a large pointwise kernel would not be spread over the threads.
constexpr std::int64_t kFewestRows = 16;
constexpr std::int64_t kLargeWork = 32768;

struct AccessPlace {
  std::size_t pass = 0;
  const Instruction* access = nullptr;
};

template <typename Wanted>
std::vector<AccessPlace> find_accesses(const Kernel& kernel, const Wanted& wanted) {
  std::vector<AccessPlace> found;
  for (std::size_t pass = 0; pass < kernel.passes.size(); ++pass) {
    for (const Instruction& instruction : kernel.passes[pass].body) {
      if (wanted(instruction)) found.push_back({pass, &instruction});
    }
  }
  return found;
}

// A pair of accesses to the same memory that says which loops of the kernels belong together.
struct SharedAccess {
  BufferId buffer = 0;
  std::size_t first_pass = 0;
  std::size_t first_place = 0;  // in the pass's body
  std::size_t second_pass = 0;
  std::size_t second_place = 0;
};

struct PlainAccess {
  BufferId buffer;
  std::size_t pass;
  std::size_t place;
  bool is_store;
  std::size_t loops;  // how many the index depends on
};

std::vector<PlainAccess> plain_accesses(const Kernel& kernel) {
  std::vector<PlainAccess> accesses;
  for (std::size_t pass = 0; pass < kernel.passes.size(); ++pass) {
    const auto& body = kernel.passes[pass].body;
    for (std::size_t place = 0; place < body.size(); ++place) {
      const Instruction& access = body[place];
      if ((access.op != Op::load && access.op != Op::store) || !access.conditions.empty()) continue;
      const auto loops = static_cast<std::size_t>(
          std::ranges::count_if(access.index.coefficients, [](auto value) { return value != 0; }));
      accesses.push_back({access.buffer, pass, place, access.op == Op::store, loops});
    }
  }
  return accesses;
}

// Ways to relate the loops, most telling first: what the first writes and the second reads, then
// what both read.
std::vector<SharedAccess> shared_accesses(const Kernel& first, const Kernel& second) {
  struct Ranked {
    SharedAccess access;
    std::size_t rank;
  };
  std::vector<Ranked> ranked;
  const auto in_second = plain_accesses(second);
  for (const PlainAccess& one : plain_accesses(first)) {
    for (const PlainAccess& other : in_second) {
      if (other.is_store || one.buffer != other.buffer) continue;
      ranked.push_back({{one.buffer, one.pass, one.place, other.pass, other.place},
                        (one.is_store ? 100U : 0U) + std::min(one.loops, other.loops)});
    }
  }
  std::ranges::stable_sort(ranked, std::greater<>(), &Ranked::rank);
  std::vector<SharedAccess> accesses;
  for (std::size_t i = 0; i < std::min<std::size_t>(ranked.size(), 4); ++i) {
    accesses.push_back(ranked[i].access);
  }
  return accesses;
}

// The one variable that an index is, or nothing.
std::optional<std::size_t> single_variable(const Index& index) {
  if (index.offset != 0) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < index.coefficients.size(); ++i) {
    if (index.coefficients[i] == 0) continue;
    if (index.coefficients[i] != 1 || found) return std::nullopt;
    found = i;
  }
  return found;
}

// If an index is a mixed-radix number made of several loops, the size of the fastest one.
std::optional<std::int64_t> fastest_part(const Index& index, const Sizes& loops) {
  if (index.offset != 0) return std::nullopt;
  std::int64_t parts = 0;
  std::optional<std::int64_t> fastest;
  for (std::size_t i = 0; i < index.coefficients.size(); ++i) {
    if (index.coefficients[i] == 0) continue;
    ++parts;
    if (index.coefficients[i] == 1) fastest = loops[i];
  }
  return parts > 1 ? fastest : std::nullopt;
}

// Makes the loops of two kernels correspond.
class Alignment {
 public:
  Alignment(const Kernel& first, const Kernel& second, const SharedAccess& shared)
      : first_(first), second_(second), shared_(shared) {}

  bool run() {
    for (int tries = 0; tries < 12; ++tries) {
      switch (step()) {
        case Result::again:
          continue;
        case Result::fail:
          return false;
        case Result::done:
          return true;
      }
    }
    return false;
  }

  Kernel& first() { return first_; }
  Kernel& second() { return second_; }

 private:
  enum class Result : std::uint8_t { again, fail, done };

  const Instruction& access(const Kernel& kernel, std::size_t pass, std::size_t place) const {
    return kernel.passes[pass].body[place];
  }

  static Result split(Kernel& kernel, std::size_t pass, std::size_t variable, std::int64_t size) {
    const std::size_t outer = kernel.outer.size();
    if (variable < outer) {
      split_outer_loop(kernel, variable, size);
      return Result::again;
    }
    // A scan is along the whole of its loop.
    const bool has_scan = std::ranges::any_of(
        kernel.passes[pass].body, [](const Instruction& access) { return is_scan(access.op); });
    if (has_scan) return Result::fail;
    split_inner_loop(kernel, kernel.passes[pass], variable - outer, size);
    return Result::again;
  }

  Result step() {
    const Sizes first_loops = loops_of(first_, first_.passes[shared_.first_pass]);
    const Sizes second_loops = loops_of(second_, second_.passes[shared_.second_pass]);
    InverseResult inverse =
        invert(access(first_, shared_.first_pass, shared_.first_place).index, first_loops,
               access(second_, shared_.second_pass, shared_.second_place).index, second_loops, {});
    if (inverse.split) {
      return split(second_, shared_.second_pass, inverse.split->variable, inverse.split->size);
    }
    if (!inverse.map) return Result::fail;
    std::vector<std::optional<std::size_t>> matches;
    for (std::size_t loop = 0; loop < first_loops.size(); ++loop) {
      const Index& variable = inverse.map->variables[loop];
      if (const auto part = fastest_part(variable, second_loops);
          part && *part < first_loops[loop] && first_loops[loop] % *part == 0) {
        return split(first_, shared_.first_pass, loop, *part);
      }
      auto match = single_variable(variable);
      if (match && second_loops[*match] != first_loops[loop]) match.reset();
      matches.push_back(match);
    }
    return reorder(matches) ? Result::done : Result::fail;
  }

  // `matches[i]`: the second kernel's loop that is the first kernel's loop i.
  bool reorder(const std::vector<std::optional<std::size_t>>& matches) {
    const bool is_first_free = is_pointwise(first_);
    const bool is_second_free = is_pointwise(second_);
    if (is_first_free && !is_second_free) return follow_second(matches);
    return follow_first(matches, is_first_free, is_second_free);
  }

  // The second kernel's loops in the order of the first's; what is left over becomes inner loops.
  bool follow_first(const std::vector<std::optional<std::size_t>>& matches, bool is_first_free,
                    bool is_second_free) {
    const std::size_t outer = first_.outer.size();
    std::vector<std::size_t> order;
    for (std::size_t loop = 0; loop < outer; ++loop) {
      if (!matches[loop] || *matches[loop] >= second_.outer.size()) return false;
      order.push_back(*matches[loop]);
    }
    if (!is_second_free || is_first_free) {
      if (order.size() != second_.outer.size()) return false;
    } else {
      for (std::size_t loop = outer; loop < matches.size(); ++loop) {
        if (matches[loop]) order.push_back(*matches[loop]);
      }
    }
    add_missing(order, second_.outer.size());
    permute_outer_loops(second_, order);
    if (is_second_free && !is_first_free && order.size() > outer) make_inner(second_, outer);
    return true;
  }

  // The same the other way round, where only the second kernel has inner loops.
  bool follow_second(const std::vector<std::optional<std::size_t>>& matches) {
    const std::size_t outer = second_.outer.size();
    const std::size_t all = outer + second_.passes[shared_.second_pass].inner.size();
    std::vector<std::size_t> order;
    for (std::size_t variable = 0; variable < all; ++variable) {
      const auto found = std::ranges::find(matches, std::optional(variable));
      if (found != matches.end()) {
        order.push_back(static_cast<std::size_t>(found - matches.begin()));
      } else if (variable < outer) {
        return false;
      }
    }
    add_missing(order, first_.outer.size());
    permute_outer_loops(first_, order);
    if (order.size() > outer) make_inner(first_, outer);
    return true;
  }

  static void add_missing(std::vector<std::size_t>& order, std::size_t count) {
    for (std::size_t loop = 0; loop < count; ++loop) {
      if (std::ranges::find(order, loop) == order.end()) order.push_back(loop);
    }
  }

  Kernel first_;
  Kernel second_;
  const SharedAccess& shared_;
};

// At each point of the outer loops, the second reads only what the first has written there.
bool is_point_by_point(const Kernel& first, const Kernel& second) {
  const auto stores = find_accesses(
      first, [](const Instruction& instruction) { return writes_memory(instruction.op); });
  for (const Pass& pass : second.passes) {
    const Sizes second_loops = loops_of(second, pass);
    for (const Instruction& access : pass.body) {
      if (!reads_memory(access.op) && !writes_memory(access.op)) continue;
      std::size_t count = 0;
      for (const AccessPlace& store : stores) {
        if (store.access->buffer != access.buffer) continue;
        if (++count > 1 || store.access->op != Op::store || access.op != Op::load) return false;
        const Sizes first_loops = loops_of(first, first.passes[store.pass]);
        const InverseResult inverse =
            invert(store.access->index, first_loops, access.index, second_loops, access.conditions);
        if (!inverse.map) return false;
        for (std::size_t loop = 0; loop < first.outer.size(); ++loop) {
          if (single_variable(inverse.map->variables[loop]) != loop) return false;
        }
      }
    }
  }
  // What the second writes must not be something that the first reads.
  const auto loads = find_accesses(
      first, [](const Instruction& instruction) { return reads_memory(instruction.op); });
  for (const AccessPlace& store : find_accesses(
           second, [](const Instruction& instruction) { return writes_memory(instruction.op); })) {
    const bool is_read = std::ranges::any_of(loads, [&](const AccessPlace& load) {
      return load.access->buffer == store.access->buffer;
    });
    if (is_read) return false;
  }
  return true;
}

enum class Walk : std::uint8_t { neither, rows, columns };

// Whether an access goes through memory faster along the inner loops or along the outer ones.
Walk walk_of(const Index& index, std::size_t outer) {
  std::int64_t inner_stride = 0;
  std::int64_t outer_stride = 0;
  for (std::size_t i = 0; i < index.coefficients.size(); ++i) {
    const std::int64_t stride = std::abs(index.coefficients[i]);
    if (stride == 0) continue;
    std::int64_t& least = i < outer ? outer_stride : inner_stride;
    least = least == 0 ? stride : std::min(least, stride);
  }
  if (inner_stride == 0 || outer_stride == 0) return Walk::neither;
  return inner_stride < outer_stride ? Walk::rows : Walk::columns;
}

// Whether the points of the outer loops are rows in memory or columns. `neither` is fine with both.
Walk walk_of(const Kernel& kernel) {
  int balance = 0;
  for (const Pass& pass : kernel.passes) {
    if (pass.inner.empty()) continue;
    for (const Instruction& access : pass.body) {
      if (!touches_memory(access.op)) continue;
      const Walk walk = walk_of(access.index, kernel.outer.size());
      if (walk == Walk::columns && writes_memory(access.op)) return Walk::columns;
      balance += walk == Walk::rows ? 1 : walk == Walk::columns ? -1 : 0;
    }
  }
  return balance > 0 ? Walk::rows : balance < 0 ? Walk::columns : Walk::neither;
}

std::int64_t longest_pass(const Kernel& kernel) {
  std::int64_t longest = 1;
  for (const Pass& pass : kernel.passes) longest = std::max(longest, points(pass.inner));
  return longest;
}

bool is_worth_merging(const Kernel& first, const Kernel& second, bool is_first_free,
                      bool is_second_free) {
  if (is_first_free && is_second_free) return true;
  if (!is_first_free && !is_second_free) {
    const Walk one = walk_of(first);
    const Walk other = walk_of(second);
    // In one loop, vectors would be right for one of them only.
    return one == other || one == Walk::neither || other == Walk::neither ||
           points(first.outer) * std::max(longest_pass(first), longest_pass(second)) < kLargeWork;
  }
  const Kernel& reduction = is_first_free ? second : first;
  const Kernel& pointwise = is_first_free ? first : second;
  const std::int64_t row = longest_pass(pointwise);
  if (row == 1) return true;
  if (walk_of(reduction) == Walk::columns || walk_of(pointwise) == Walk::columns) return false;
  const std::int64_t rows = points(reduction.outer);
  return row >= kShortestRow && (rows >= kFewestRows || rows * row < kLargeWork);
}

Kernel joined(Kernel first, const Kernel& second) {
  ValueId count = 0;
  for (const Pass& pass : first.passes) count += static_cast<ValueId>(pass.body.size());
  for (const Pass& pass : second.passes) {
    Pass& copy = first.passes.emplace_back(pass);
    for (Instruction& instruction : copy.body) {
      for (ValueId& operand : instruction.operands) {
        if (operand != kNoValue) operand += count;
      }
    }
  }
  for (const graph::Node* node : second.nodes) {
    if (std::ranges::find(first.nodes, node) == first.nodes.end()) first.nodes.push_back(node);
  }
  combine_passes(first);
  return first;
}

std::size_t instruction_count(const Kernel& kernel) {
  std::size_t count = 0;
  for (const Pass& pass : kernel.passes) count += pass.body.size();
  return count;
}

bool has_empty_loop(const Kernel& kernel) {
  return points(kernel.outer) == 0 || std::ranges::any_of(kernel.passes, [](const Pass& pass) {
           return points(pass.inner) == 0;
         });
}

}  // namespace

bool is_pointwise(const Kernel& kernel) {
  return kernel.passes.size() == 1 && kernel.passes[0].inner.empty() && !is_ordered(kernel);
}

bool is_ordered(const Kernel& kernel) {
  bool is = false;
  for_each_instruction(kernel, [&](const Instruction& instruction) {
    is = is || instruction.op == Op::store_indirect || instruction.op == Op::add_indirect;
  });
  return is;
}

std::optional<Kernel> merge_pair(const Kernel& first, const Kernel& second) {
  if (is_ordered(first) || is_ordered(second) || has_empty_loop(first) || has_empty_loop(second) ||
      instruction_count(first) + instruction_count(second) > kMostMergedInstructions) {
    return std::nullopt;
  }
  const bool is_first_free = is_pointwise(first);
  const bool is_second_free = is_pointwise(second);
  for (const SharedAccess& shared : shared_accesses(first, second)) {
    Alignment alignment(first, second, shared);
    if (!alignment.run() || alignment.first().outer != alignment.second().outer ||
        !is_point_by_point(alignment.first(), alignment.second())) {
      continue;
    }
    if (!is_worth_merging(alignment.first(), alignment.second(), is_first_free, is_second_free)) {
      return std::nullopt;
    }
    return joined(std::move(alignment.first()), alignment.second());
  }
  return std::nullopt;
}

}  // namespace assay::kernels
