/// \file Which steps of a program depend on which, while some of them become one: fusion must not
/// make two steps wait for each other.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

inline constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();

class StepGraph {
 public:
  explicit StepGraph(const LoopProgram& program);

  /// The step that `step` is part of by now.
  std::size_t find(std::size_t step) const;
  /// Whether `step` must wait for `other` itself.
  bool waits_for(std::size_t step, std::size_t other) const;
  /// Whether `from` must run before `to` because of a third step, or may have to.
  bool has_path_between(std::size_t from, std::size_t to) const;
  /// `second` becomes part of `first`. There must be no path between them.
  void join(std::size_t first, std::size_t second);
  /// The steps that are left, in an order in which they can run: the original one where possible.
  std::vector<std::size_t> order() const;

 private:
  struct Group {
    std::size_t parent = 0;
    std::size_t first = 0;            ///< The first of the steps that it consists of.
    std::vector<std::size_t> before;  ///< What must run before it; may mention joined steps.
  };
  std::vector<bool> find_ancestors(std::size_t first, std::size_t second, std::size_t lowest) const;

  mutable std::vector<Group> groups_;
  /// An order in which the groups can run, kept up to date: whatever waits for a group has a higher
  /// rank. So a search for a path need not look below the rank it started from.
  std::vector<std::size_t> rank_;
  std::vector<std::size_t> by_rank_;  ///< The group, or kNoGroup where one was joined to another.
};

}  // namespace assay::kernels
