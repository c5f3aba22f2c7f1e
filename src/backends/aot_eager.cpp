// The ahead-of-time backends that run their graphs operator by operator: they tell whether autograd
// or the kernels are at fault.
#include "backends/aot.h"
#include "backends/backends.h"

namespace assay::backends {

CompiledPointer compile_aot_eager(const CompileRequest& request) {
  return compile_ahead_of_time(request, {.partitioner = &autograd::partition_min_cut});
}

CompiledPointer compile_aot_eager_default_partitioner(const CompileRequest& request) {
  return compile_ahead_of_time(request, {.partitioner = &autograd::partition_default});
}

CompiledPointer compile_aot_eager_decomp_partition(const CompileRequest& request) {
  return compile_ahead_of_time(request,
                               {.partitioner = &autograd::partition_min_cut, .decompose = true});
}

}  // namespace assay::backends
