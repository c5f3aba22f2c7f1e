#include "kernels/target.h"

#include <fstream>
#include <sstream>

namespace assay::kernels {

namespace {

// What the compiler's -march=native looks at: the model and its features, as the kernel sees them.
std::string describe_cpu() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    for (const char* field :
         {"vendor_id", "cpu family", "model", "stepping", "flags", "Features"}) {
      if (line.starts_with(field)) text += line + "\n";
    }
  }
  return text;
}

int vector_bytes_of_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw")) {
    return 64;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
  return 16;
}

}  // namespace

const Target& native_target() {
  static const Target target{vector_bytes_of_cpu(), describe_cpu()};
  return target;
}

}  // namespace assay::kernels
