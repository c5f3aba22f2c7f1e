/// \file Compiles a half graph to machine code: the compiler of the backend `native`.
#pragma once

#include <memory>
#include <string>

#include "assay/compiler.h"

namespace assay::kernels {

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
