#include "kernels/merge_kernels.h"

#include <algorithm>
#include <unordered_map>

#include "kernels/loop_edit.h"
#include "kernels/memory_plan.h"
#include "kernels/merge_pair.h"
#include "kernels/program_uses.h"
#include "kernels/step_graph.h"
#include "observe/observe.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_merge(
    {.name = "merge_kernels",
     .room = "kernels",
     .description = "runs kernels with the same outer loops as one"});

// Partners that are tried for one kernel: those with which it shares most.
constexpr std::size_t kMostPartners = 6;
// Of the readers of a buffer, the last ones.
constexpr std::size_t kMostSiblings = 6;

class Merger {
 public:
  Merger(LoopProgram& program, StepContext& context)
      : program_(program),
        context_(context),
        graph_(program),
        writer_counts_(program.buffers.size(), 0) {
    for (const Step& step : program.steps) {
      uses_.push_back(uses_of(step));
      for (BufferId buffer : uses_.back().writes) ++writer_counts_[buffer];
    }
  }

  void run() {
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      if (auto* kernel = kernel_at(step)) join_loops(*kernel);
      if (is_mergeable(step)) {
        while (merge_with_partner(graph_.find(step))) {
        }
      }
      note(step);
    }
    std::vector<Step> steps;
    for (std::size_t step : graph_.order()) steps.push_back(std::move(program_.steps[step]));
    program_.steps = std::move(steps);
  }

 private:
  Kernel* kernel_at(std::size_t step) { return std::get_if<Kernel>(&program_.steps[step]); }

  // A kernel that writes a part of a buffer stays between those that write the other parts.
  bool is_mergeable(std::size_t step) {
    return kernel_at(step) != nullptr && std::ranges::none_of(uses_[step].writes, [&](BufferId id) {
             return writer_counts_[id] > 1;
           });
  }

  void note(std::size_t step) {
    for (BufferId buffer : uses_[step].writes) writers_[buffer] = step;
    for (BufferId buffer : uses_[step].reads) readers_[buffer].push_back(step);
  }

  // The kernels that have been seen so far and share memory with this one, best first.
  std::vector<std::size_t> partners(std::size_t step) {
    std::unordered_map<std::size_t, std::int64_t> shared;
    const auto add = [&](std::size_t other, std::int64_t bytes) {
      other = graph_.find(other);
      if (other != step && is_mergeable(other)) shared[other] += bytes;
    };
    for (BufferId buffer : uses_[step].reads) {
      const std::int64_t bytes = size_in_bytes(program_.buffers[buffer]) + 1;
      if (const auto writer = writers_.find(buffer); writer != writers_.end()) {
        add(writer->second, 2 * bytes);
      }
      if (const auto found = readers_.find(buffer); found != readers_.end()) {
        const auto& readers = found->second;
        for (std::size_t i = readers.size(); i-- > 0 && readers.size() - i <= kMostSiblings;) {
          add(readers[i], bytes);
        }
      }
    }
    // A kernel that was merged has results that later ones read.
    for (BufferId buffer : uses_[step].writes) {
      const auto found = readers_.find(buffer);
      if (found == readers_.end()) continue;
      const auto& readers = found->second;
      for (std::size_t i = readers.size(); i-- > 0 && readers.size() - i <= kMostSiblings;) {
        add(readers[i], 2 * size_in_bytes(program_.buffers[buffer]) + 1);
      }
    }
    std::vector<std::pair<std::int64_t, std::size_t>> ranked;
    for (const auto& [other, bytes] : shared) ranked.emplace_back(bytes, other);
    std::ranges::sort(ranked, [](const auto& left, const auto& right) {
      return left.first != right.first ? left.first > right.first : left.second > right.second;
    });
    std::vector<std::size_t> best;
    for (std::size_t i = 0; i < std::min(ranked.size(), kMostPartners); ++i) {
      best.push_back(ranked[i].second);
    }
    return best;
  }

  bool reads_from(std::size_t reader, std::size_t writer) const {
    return std::ranges::any_of(uses_[reader].reads, [&](BufferId buffer) {
      const auto& writes = uses_[writer].writes;
      return std::ranges::find(writes, buffer) != writes.end();
    });
  }

  bool merge_with_partner(std::size_t step) {
    for (std::size_t other : partners(step)) {
      // What is read is computed first; siblings stay in their order.
      const bool is_other_first = !reads_from(other, step);
      const std::size_t first = is_other_first ? other : step;
      const std::size_t second = is_other_first ? step : other;
      if (graph_.waits_for(first, second) || graph_.has_path_between(first, second) ||
          graph_.has_path_between(second, first)) {
        continue;
      }
      auto merged = merge_pair(*kernel_at(first), *kernel_at(second));
      observe::artifact(observe::Artifact::fusion, [&] {
        return std::string(merged ? "merged " : "kept apart ") + kernel_at(first)->name + " and " +
               kernel_at(second)->name;
      });
      if (!merged || !context_.may_apply()) continue;
      join_loops(*merged);
      context_.applied(*merged);
      *kernel_at(first) = std::move(*merged);
      graph_.join(first, second);
      uses_[first] = uses_of(program_.steps[first]);
      add_uses(uses_[first], uses_[second]);
      return true;
    }
    return false;
  }

  // What is forwarded in registers is not read any more, but the group still writes it.
  static void add_uses(StepUses& uses, const StepUses& more) {
    for (BufferId buffer : more.writes) {
      if (std::ranges::find(uses.writes, buffer) == uses.writes.end())
        uses.writes.push_back(buffer);
    }
  }

  LoopProgram& program_;
  StepContext& context_;
  StepGraph graph_;
  std::vector<StepUses> uses_;  // by step, of all that were joined to it
  std::vector<int> writer_counts_;
  std::unordered_map<BufferId, std::size_t> writers_;
  std::unordered_map<BufferId, std::vector<std::size_t>> readers_;
};

}  // namespace

void merge_kernels(LoopProgram& program, StepContext& context) { Merger(program, context).run(); }

}  // namespace assay::kernels
