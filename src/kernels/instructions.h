/// \file Kinds of instructions of the loop IR, for everyone who walks over them.
#pragma once

#include "kernels/ir.h"

namespace assay::kernels {

inline bool reads_memory(Op op) { return op == Op::load || op == Op::load_indirect; }
inline bool writes_memory(Op op) {
  return op == Op::store || op == Op::store_indirect || op == Op::add_indirect;
}
inline bool touches_memory(Op op) { return reads_memory(op) || writes_memory(op); }
inline bool is_reduction(Op op) { return op >= Op::reduce_sum && op <= Op::reduce_argmin; }
inline bool is_scan(Op op) { return op >= Op::scan_sum && op <= Op::scan_min; }
/// Has an effect, and no result.
inline bool has_no_result(Op op) { return writes_memory(op) || op == Op::check; }

}  // namespace assay::kernels
