/// \file Compiles a half graph to machine code: the compiler of the backend `native`.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "assay/compiler.h"

namespace assay::kernels {

/// The steps of the pipeline: the first, which must be, and those that can be switched off, in
/// their order.
inline constexpr std::string_view kFirstStep = "lower_to_loops";
inline constexpr auto kOptionalSteps =
    std::to_array<std::string_view>({"inline_producers", "split_reductions", "merge_kernels",
                                     "simplify", "schedule", "use_out_variants", "reuse_in_place"});

/// What a user may set: the names are options of the backend.
struct KernelOptions {
  bool interpret = false;  ///< Execute loops instruction by instruction, without a compiler.
  /// Compile this text instead of what is generated for the graph: that text, edited by a user.
  std::string code = {};
};

/// Takes an inference, forward or backward graph. Throws `KernelCompileError` if the compiler does
/// not accept the generated code.
std::shared_ptr<const CompiledGraph> compile(const CompileRequest& request,
                                             const KernelOptions& options);

}  // namespace assay::kernels
