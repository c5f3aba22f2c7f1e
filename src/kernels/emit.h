/// \file From scheduled loop IR to C++ text. The pipeline (compile.cpp) calls `emit`, compiles the
/// text (toolchain.h, kernel_cache.h), and calls one function per kernel:
///
///     int NAME(void* const* buffers, long begin, long end)
///
/// - `buffers` are the data pointers of `EmittedKernel::buffers`, in that order.
/// - [begin, end) is a range out of `EmittedKernel::points`, cut at multiples of `unit`. Units are
///   independent: they can run in any order and in any thread, and how they are cut into ranges
///   never changes a result. A kernel with `is_serial` must be called with all of them at once.
///   How many there are is not part of the text: the same function serves every batch size.
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
  std::int64_t points = 0;
  std::int64_t unit = 1;
  bool is_serial = false;  ///< It stores through indices that may repeat.

  std::int64_t work_units() const { return (points + unit - 1) / unit; }
};

struct EmittedFunction {
  std::string symbol;
  std::string text;         ///< With the comment before it.
  std::size_t buffers = 0;  ///< How many it is passed.
};

struct EmittedProgram {
  std::string code;    ///< All of it.
  std::string shared;  ///< What the functions use; it stands before them.
  std::vector<EmittedFunction> functions;
  std::vector<EmittedKernel> kernels;  ///< One per step that is a kernel, in order.
};

/// The text of a program with only some of its functions.
std::string code_of(const std::string& shared, const std::vector<EmittedFunction>& functions);

/// `program` must be verified (verify.h).
EmittedProgram emit(const LoopProgram& program, const Target& target);

/// At most `count` texts with the same kernels between them, each of which compiles alone. A text
/// that has no kernels, or was edited beyond recognition, is one unit.
std::vector<std::string> split_units(std::string_view code, std::size_t count);

}  // namespace assay::kernels
