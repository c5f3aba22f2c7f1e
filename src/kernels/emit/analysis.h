/// \file What the emitter knows about a kernel before it writes: where each instruction stands in
/// the nest of loops, which values differ between the lanes of a vector, and how wide vectors are.
#pragma once

#include <string>
#include <vector>

#include "kernels/instructions.h"
#include "kernels/ir.h"
#include "kernels/target.h"

namespace assay::kernels {

/// Loops of a kernel, outermost first, as levels: 0 is a row (all outer loops but the last), 1 a
/// column (the last outer loop), 2 + k the k-th inner loop of a pass.
using Level = int;

struct KernelAnalysis {
  enum class Mode {
    scalar,
    columns,  ///< Lanes are points of the last outer loop.
    inner,    ///< Lanes are points of a pass's last inner loop.
  };
  struct Instruction {
    const kernels::Instruction* instruction = nullptr;
    int pass = 0;
    Level level = 0;          ///< The loop it stands in: the innermost that it depends on.
    bool is_varying = false;  ///< It differs between lanes.
    int mask_width = 0;       ///< Of a varying bool: bytes per lane.
    /// Of an index: it only serves as the position of an argmax or argmin, fits into an i32 and
    /// grows from point to point.
    bool is_position = false;
    bool is_tiled = false;  ///< Of a load: it reads from a transposed tile.
    /// Of a comparison of an index with a number that is the same in all lanes: which operand is
    /// the index, else -1. The lanes are compared by their distance from the first one, in 32 bits.
    int compared_index = -1;
    bool is_only_compared = false;  ///< Of an index: in this way, so that nobody needs its value.
  };

  Mode mode = Mode::scalar;
  int lanes = 1;   ///< Of one vector.
  int copies = 1;  ///< How many vectors of columns are computed side by side.
  /// The row loop that is cut into tiles together with the columns, or -1: some loads are
  /// contiguous along it and not along the columns.
  int tile_variable = -1;
  bool is_serial = false;
  int weight = 0;                   ///< About how many machine instructions a point takes.
  std::vector<Instruction> values;  ///< By ValueId.
  std::vector<bool> is_stored;      ///< By BufferId: the kernel stores to it.
  std::vector<BufferId> buffers;    ///< In order of first mention, scratch too.
};

KernelAnalysis analyze(const Kernel& kernel, const LoopProgram& program, const Target& target);

/// Which variable of the pass's indices the lanes follow; -1 if none.
int vector_variable(const Kernel& kernel, const KernelAnalysis& analysis, const Pass& pass);

/// Whether the pass is made of vectors along its last inner loop.
bool is_vector_pass(const KernelAnalysis& analysis, const Pass& pass);

int pass_weight(const Pass& pass);

/// How many vectors side by side suit a loop of `points` points.
int choose_copies(int weight, std::int64_t points, int lanes);

}  // namespace assay::kernels
