/// \file Where each buffer of a program is while it runs: the last step before code is emitted.
///
/// Intermediates share one arena (arena_pool.h), in which a place is used again after the last step
/// that reads it. What leaves the program (its outputs, and whatever
/// an operator's result may be a view of) is a tensor of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ir.h"
#include "kernels/step_pipeline.h"

namespace assay::kernels {

enum class Storage : std::uint8_t {
  none,    ///< Nothing uses the buffer, or it is inside a kernel.
  input,   ///< The caller's tensor.
  arena,   ///< At `offset` of the arena.
  fresh,   ///< A tensor that is allocated in each call.
  result,  ///< A tensor that an operator allocates.
};

struct Place {
  Storage storage = Storage::none;
  std::int64_t offset = 0;  ///< In bytes.
};

struct MemoryPlan {
  std::vector<Place> places;  ///< One per buffer.
  std::int64_t arena_bytes = 0;
  /// The most memory that intermediates and outputs take at once.
  std::int64_t peak_bytes = 0;
  /// For each step: the fresh buffers it is the first to write, and those (fresh, inputs, results)
  /// that no later step needs.
  std::vector<std::vector<BufferId>> allocated;
  std::vector<std::vector<BufferId>> released;
};

/// The bytes of a buffer.
std::int64_t size_in_bytes(const Buffer& buffer);

/// Results of operators with an `out=` become intermediates, so that they have a place in the plan.
void use_out_variants(LoopProgram& program, StepContext& context);

MemoryPlan plan_memory(const LoopProgram& program, StepContext& context);

}  // namespace assay::kernels
