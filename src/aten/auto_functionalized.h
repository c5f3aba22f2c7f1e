/// \file auto_functionalized and auto_functionalized_v2: how graphs after AOTAutograd call an
/// operator that mutates its arguments. The operator runs on copies, which are results. Used by
/// aten/higher_order.cpp.
#pragma once

#include "aten/match.h"
#include "aten/plan.h"

namespace assay::aten {

/// auto_functionalized(op, **arguments): the results, then a new value of each mutated argument.
Value run_auto_functionalized(const Arguments& arguments, const RunPlan& plan);

/// The same with views: `_all_bases` are copied, and `_x_base_index`, `_x_size`, ... say which view
/// of which copy the argument `x` is. Gives the results, then the copies.
Value run_auto_functionalized_v2(const Arguments& arguments, const RunPlan& plan);

}  // namespace assay::aten
