// The backend that generates kernels: ahead-of-time autograd, then each half through the kernels'
// pipeline (kernels/compile.h).
#include "backends/aot.h"
#include "backends/backends.h"
#include "kernels/compile.h"

namespace assay::backends {

namespace {

bool native_flag(const BackendOptions& options, std::string_view name) {
  const auto found = options.find(name);
  return found != options.end() && std::get<bool>(found->second);
}

}  // namespace

CompiledPointer compile_native(const CompileRequest& request) {
  const kernels::KernelOptions options{.interpret = native_flag(request.options, "interpret")};
  return compile_ahead_of_time(request, {.partitioner = &autograd::partition_min_cut,
                                         .decompose = true,
                                         .compiler = [options](const CompileRequest& half) {
                                           return kernels::compile(half, options);
                                         }});
}

}  // namespace assay::backends
