#include "cli/threads.h"

#include <ATen/Parallel.h>

namespace assay::cli {

int take_threads(int wanted) {
  const int threads = wanted > 0 ? wanted : at::get_num_threads();
  at::set_num_threads(1);
  return threads;
}

}  // namespace assay::cli
