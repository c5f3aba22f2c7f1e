/// \file Which steps of a program depend on which, while some of them become one: fusion must not
/// make two steps wait for each other.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

class StepGraph {
 public:
  explicit StepGraph(const LoopProgram& program);

  /// The step that `step` is part of by now.
  std::size_t find(std::size_t step) const;
  /// Whether `from` must run before `to` because of a third step, or may have to.
  bool has_path_between(std::size_t from, std::size_t to) const;
  /// `second` becomes part of `first`.
  void join(std::size_t first, std::size_t second);
  /// The steps that are left, in an order in which they can run: the original one where possible.
  std::vector<std::size_t> order() const;

 private:
  struct Group {
    std::size_t parent = 0;
    std::size_t first = 0;  ///< The first and last of the steps that it consists of.
    std::size_t last = 0;
    std::vector<std::size_t> before;  ///< What must run before it; may mention joined steps.
  };
  mutable std::vector<Group> groups_;
};

}  // namespace assay::kernels
