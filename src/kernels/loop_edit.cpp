#include "kernels/loop_edit.h"

#include <algorithm>
#include <numeric>

#include "assay/error.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

void add_to(Index& index, std::size_t variable, std::int64_t coefficient) {
  if (index.coefficients.size() <= variable) index.coefficients.resize(variable + 1, 0);
  index.coefficients[variable] += coefficient;
}

// Calls `visit` for every index of a pass.
template <typename Visit>
void for_each_index(Pass& pass, const Visit& visit) {
  for (Instruction& instruction : pass.body) {
    visit(instruction.index);
    for (Condition& condition : instruction.conditions) visit(condition.index);
  }
}

template <typename Test>
bool all_indices(const Pass& pass, const Test& test) {
  return std::ranges::all_of(pass.body, [&](const Instruction& instruction) {
    return test(instruction.index) &&
           std::ranges::all_of(instruction.conditions,
                               [&](const Condition& condition) { return test(condition.index); });
  });
}

// The variables after a loop was cut in two: what each old one is.
std::vector<Index> split_variables(std::size_t count, std::size_t loop, std::int64_t size) {
  std::vector<Index> variables;
  for (std::size_t i = 0; i < count; ++i) {
    variables.push_back(variable_index(i <= loop ? i : i + 1, i == loop ? size : 1));
    if (i == loop) add_to(variables.back(), loop + 1, 1);
  }
  return variables;
}

// Removes variable `variable`, which is always 0 or does not matter.
void drop_variable(Pass& pass, std::size_t variable) {
  for_each_index(pass, [&](Index& index) {
    if (variable < index.coefficients.size()) {
      index.coefficients.erase(index.coefficients.begin() + static_cast<std::ptrdiff_t>(variable));
    }
  });
}

// Loop `loop + 1`, of `size` points, can be part of loop `loop`.
bool can_join(const Pass& pass, std::size_t loop, std::int64_t size) {
  return all_indices(pass, [&](const Index& index) {
    return index.coefficient(loop) == index.coefficient(loop + 1) * size;
  });
}

// The joined loop has the stride of the second one.
void join(Pass& pass, std::size_t loop) { drop_variable(pass, loop); }

bool has_scan(const Pass& pass) {
  return std::ranges::any_of(
      pass.body, [](const Instruction& instruction) { return is_scan(instruction.op); });
}

}  // namespace

Index variable_index(std::size_t variable, std::int64_t coefficient) {
  Index index;
  add_to(index, variable, coefficient);
  return index;
}

Index substitute(const Index& index, std::span<const Index> variables) {
  Index result;
  result.offset = index.offset;
  for (std::size_t i = 0; i < index.coefficients.size(); ++i) {
    const std::int64_t coefficient = index.coefficients[i];
    if (coefficient == 0) continue;
    internal_check(i < variables.size(), "an index mentions loops that exist");
    result.offset += coefficient * variables[i].offset;
    for (std::size_t j = 0; j < variables[i].coefficients.size(); ++j) {
      const std::int64_t inner = variables[i].coefficients[j];
      if (inner != 0) add_to(result, j, coefficient * inner);
    }
  }
  return result;
}

bool same_index(const Index& left, const Index& right) {
  if (left.offset != right.offset) return false;
  const std::size_t count = std::max(left.coefficients.size(), right.coefficients.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (left.coefficient(i) != right.coefficient(i)) return false;
  }
  return true;
}

bool same_conditions(const std::vector<Condition>& left, const std::vector<Condition>& right) {
  return std::ranges::equal(left, right, [](const Condition& one, const Condition& other) {
    return one.lower == other.lower && one.upper == other.upper &&
           same_index(one.index, other.index);
  });
}

Sizes loops_of(const Kernel& kernel, const Pass& pass) {
  Sizes loops = kernel.outer;
  loops.append(pass.inner.begin(), pass.inner.end());
  return loops;
}

void substitute_variables(Pass& pass, std::span<const Index> variables) {
  for_each_index(pass, [&](Index& index) { index = substitute(index, variables); });
}

void split_outer_loop(Kernel& kernel, std::size_t loop, std::int64_t size) {
  for (Pass& pass : kernel.passes) {
    substitute_variables(pass,
                         split_variables(kernel.outer.size() + pass.inner.size(), loop, size));
  }
  kernel.outer[loop] /= size;
  kernel.outer.insert(kernel.outer.begin() + static_cast<std::ptrdiff_t>(loop) + 1, size);
}

void split_inner_loop(Kernel& kernel, Pass& pass, std::size_t loop, std::int64_t size) {
  const std::size_t outer = kernel.outer.size();
  substitute_variables(pass, split_variables(outer + pass.inner.size(), outer + loop, size));
  pass.inner[loop] /= size;
  pass.inner.insert(pass.inner.begin() + static_cast<std::ptrdiff_t>(loop) + 1, size);
}

void permute_outer_loops(Kernel& kernel, std::span<const std::size_t> order) {
  Sizes outer;
  std::vector<std::size_t> places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    outer.push_back(kernel.outer[order[i]]);
    places[order[i]] = i;
  }
  for (Pass& pass : kernel.passes) {
    std::vector<Index> variables;
    for (std::size_t place : places) variables.push_back(variable_index(place));
    for (std::size_t i = 0; i < pass.inner.size(); ++i) {
      variables.push_back(variable_index(order.size() + i));
    }
    substitute_variables(pass, variables);
  }
  kernel.outer = std::move(outer);
}

void permute_inner_loops(Kernel& kernel, Pass& pass, std::span<const std::size_t> order) {
  Sizes inner;
  std::vector<std::size_t> places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    inner.push_back(pass.inner[order[i]]);
    places[order[i]] = i;
  }
  std::vector<Index> variables;
  const std::size_t outer = kernel.outer.size();
  for (std::size_t i = 0; i < outer; ++i) variables.push_back(variable_index(i));
  for (std::size_t place : places) variables.push_back(variable_index(outer + place));
  substitute_variables(pass, variables);
  pass.inner = std::move(inner);
}

void make_inner(Kernel& kernel, std::size_t first) {
  const Sizes inner(kernel.outer.begin() + static_cast<std::ptrdiff_t>(first), kernel.outer.end());
  for (Pass& pass : kernel.passes) {
    internal_check(pass.inner.empty(), "only the loops of pointwise kernels change their level");
    pass.inner = inner;
  }
  kernel.outer.resize(first);
}

void join_loops(Kernel& kernel) {
  for (std::size_t loop = kernel.outer.size(); loop-- > 0;) {
    if (kernel.outer[loop] != 1) continue;
    for (Pass& pass : kernel.passes) drop_variable(pass, loop);
    kernel.outer.erase(kernel.outer.begin() + static_cast<std::ptrdiff_t>(loop));
  }
  for (std::size_t loop = kernel.outer.size(); loop-- > 1;) {
    const std::int64_t size = kernel.outer[loop];
    const bool all = std::ranges::all_of(
        kernel.passes, [&](const Pass& pass) { return can_join(pass, loop - 1, size); });
    if (!all) continue;
    for (Pass& pass : kernel.passes) join(pass, loop - 1);
    kernel.outer[loop - 1] *= size;
    kernel.outer.erase(kernel.outer.begin() + static_cast<std::ptrdiff_t>(loop));
  }
  const std::size_t outer = kernel.outer.size();
  for (Pass& pass : kernel.passes) {
    // A scan is along the last loop, so that must stay what it is; a pass with inner loops has
    // at least one, or a reduction would not be one.
    const std::size_t fixed = has_scan(pass) ? 1 : 0;
    for (std::size_t loop = pass.inner.size() - std::min(fixed, pass.inner.size()); loop-- > 0;) {
      if (pass.inner[loop] != 1 || pass.inner.size() == 1) continue;
      drop_variable(pass, outer + loop);
      pass.inner.erase(pass.inner.begin() + static_cast<std::ptrdiff_t>(loop));
    }
    for (std::size_t loop = pass.inner.size() - std::min(fixed, pass.inner.size()); loop-- > 1;) {
      const std::int64_t size = pass.inner[loop];
      if (!can_join(pass, outer + loop - 1, size)) continue;
      join(pass, outer + loop - 1);
      pass.inner[loop - 1] *= size;
      pass.inner.erase(pass.inner.begin() + static_cast<std::ptrdiff_t>(loop));
    }
  }
}

}  // namespace assay::kernels
