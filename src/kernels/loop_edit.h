/// \file Changes of a kernel's loops that leave what it computes as it is: fusion makes the loops
/// of two kernels equal with them, simplification makes loops few, scheduling orders them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

/// The variable of loop `variable` alone.
Index variable_index(std::size_t variable, std::int64_t coefficient = 1);

/// `index` with variable k replaced by `variables[k]`, an expression of other loops.
Index substitute(const Index& index, std::span<const Index> variables);

/// The same function of the loops.
bool same_index(const Index& left, const Index& right);
bool same_conditions(const std::vector<Condition>& left, const std::vector<Condition>& right);

/// The sizes of all loops around a pass's body: outer, then inner.
Sizes loops_of(const Kernel& kernel, const Pass& pass);

/// Replaces the variables in all indices of a pass.
void substitute_variables(Pass& pass, std::span<const Index> variables);

/// Makes two loops of one; the second one has `size` points, which must divide the loop's.
void split_outer_loop(Kernel& kernel, std::size_t loop, std::int64_t size);
void split_inner_loop(Kernel& kernel, Pass& pass, std::size_t loop, std::int64_t size);

/// Puts the outer loops into another order: `order[i]` is the old place of the new loop i.
void permute_outer_loops(Kernel& kernel, std::span<const std::size_t> order);
void permute_inner_loops(Kernel& kernel, Pass& pass, std::span<const std::size_t> order);

/// Makes the outer loops from number `first` on inner loops of every pass. The passes must have no
/// inner loops.
void make_inner(Kernel& kernel, std::size_t first);

/// Removes loops of one point, and joins neighbors through which every index walks in one stride.
void join_loops(Kernel& kernel);

}  // namespace assay::kernels
