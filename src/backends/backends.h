/// \file The compile functions of the backends; backends/table.cpp gives them their names.
#pragma once

#include "backends/registry.h"

namespace assay::backends {

// eager.cpp, eager_debug.cpp
Callable compile_eager(const Subject& subject);
Callable compile_eager_noexcept(const Subject& subject);
Callable compile_pre_dispatch_eager(const Subject& subject);
Callable compile_eager_debug(const Subject& subject);

// aot_eager.cpp, observed.cpp, invoke_subgraph.cpp
Callable compile_aot_eager(const Subject& subject);
Callable compile_aot_eager_default_partitioner(const Subject& subject);
Callable compile_aot_eager_decomp_partition(const Subject& subject);
Callable compile_aot_eager_decomp_partition_with_mode(const Subject& subject);
Callable compile_aot_eager_decomp_partition_crossref(const Subject& subject);
Callable compile_invoke_subgraph(const Subject& subject);

// torchscript.cpp
Callable compile_ts(const Subject& subject);
Callable compile_aot_ts(const Subject& subject);

// testing_only.cpp
Callable compile_relu_compile_error(const Subject& subject);
Callable compile_relu_runtime_error(const Subject& subject);
Callable compile_relu_accuracy_error(const Subject& subject);
Callable compile_non_leaf_compile_error(const Subject& subject);

}  // namespace assay::backends
