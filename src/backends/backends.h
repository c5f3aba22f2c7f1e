/// \file The compile functions of our own backends; backends/table.cpp gives them their names.
#pragma once

#include <memory>
#include <vector>

#include "assay/backend.h"

namespace assay::backends {

/// The table: every backend of ours, in the order in which the guide tries them.
std::vector<Backend> own_backends();

using CompiledPointer = std::shared_ptr<const CompiledGraph>;

// eager.cpp, eager_debug.cpp
CompiledPointer compile_eager(const CompileRequest& request);
CompiledPointer compile_eager_noexcept(const CompileRequest& request);
CompiledPointer compile_pre_dispatch_eager(const CompileRequest& request);
CompiledPointer compile_eager_debug(const CompileRequest& request);

// aot_eager.cpp, observed.cpp, invoke_subgraph.cpp
CompiledPointer compile_aot_eager(const CompileRequest& request);
CompiledPointer compile_aot_eager_default_partitioner(const CompileRequest& request);
CompiledPointer compile_aot_eager_decomp_partition(const CompileRequest& request);
CompiledPointer compile_aot_eager_decomp_partition_with_mode(const CompileRequest& request);
CompiledPointer compile_aot_eager_decomp_partition_crossref(const CompileRequest& request);
CompiledPointer compile_invoke_subgraph(const CompileRequest& request);

// torchscript.cpp
CompiledPointer compile_ts(const CompileRequest& request);
CompiledPointer compile_aot_ts(const CompileRequest& request);

// testing_only.cpp
CompiledPointer compile_relu_compile_error(const CompileRequest& request);
CompiledPointer compile_relu_runtime_error(const CompileRequest& request);
CompiledPointer compile_relu_accuracy_error(const CompileRequest& request);
CompiledPointer compile_non_leaf_compile_error(const CompileRequest& request);

}  // namespace assay::backends
