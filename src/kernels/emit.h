/// \file From scheduled loop IR to C++ text. The pipeline (compile.cpp) calls `emit`, compiles the
/// text (toolchain.h, kernel_cache.h), and calls one function per kernel:
///
///     int NAME(void* const* buffers, long begin, long end)
///
/// - `buffers` are the data pointers of `EmittedKernel::buffers`, in that order.
/// - [begin, end) is a range of work units, out of `EmittedKernel::work_units`. Units are
///   independent: they can run in any order and in any thread, and how they are cut into ranges
///   never changes a result. A kernel with `is_serial` must be called with all of them at once.
/// - The result is 0, or 1 + the number of the `check` that failed, counted in the kernel's order.
///
/// The text includes no header and is what a user sees, edits and runs again. Each kernel starts
/// with a line `// kernel NAME: ...`, before which stands everything that kernels share; so large
/// programs can be cut into several translation units (`split_units`).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ir.h"
#include "kernels/target.h"

namespace assay::kernels {

struct EmittedKernel {
  std::string symbol;             ///< Kernels that do the same with other buffers share one.
  std::vector<BufferId> buffers;  ///< Distinct, in order of first mention, without scratch.
  std::int64_t work_units = 0;
  bool is_serial = false;  ///< It stores through indices that may repeat.
};

struct EmittedProgram {
  std::string code;
  std::vector<EmittedKernel> kernels;  ///< One per step that is a kernel, in order.
};

/// `program` must be verified (verify.h).
EmittedProgram emit(const LoopProgram& program, const Target& target);

/// At most `count` texts with the same kernels between them, each of which compiles alone. A text
/// that has no kernels, or was edited beyond recognition, is one unit.
std::vector<std::string> split_units(std::string_view code, std::size_t count);

}  // namespace assay::kernels
