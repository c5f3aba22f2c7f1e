// The ahead-of-time backends that run their graphs operator by operator: they tell whether autograd
// or the kernels are at fault.
#include "backends/aot.h"
#include "backends/backends.h"

namespace assay::backends {

Callable compile_aot_eager(const Subject& subject) {
  return compile_ahead_of_time(subject, {.partitioner = &autograd::partition_min_cut});
}

Callable compile_aot_eager_default_partitioner(const Subject& subject) {
  return compile_ahead_of_time(subject, {.partitioner = &autograd::partition_default});
}

Callable compile_aot_eager_decomp_partition(const Subject& subject) {
  return compile_ahead_of_time(subject,
                               {.partitioner = &autograd::partition_min_cut, .decompose = true});
}

}  // namespace assay::backends
