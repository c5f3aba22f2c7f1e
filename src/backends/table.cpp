#include "backends/backends.h"

namespace assay::backends {

// eager.cpp, eager_debug.cpp
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

// native.cpp
CompiledPointer compile_native(const CompileRequest& request);

// torchscript.cpp
CompiledPointer compile_ts(const CompileRequest& request);
CompiledPointer compile_aot_ts(const CompileRequest& request);

// testing_only.cpp
CompiledPointer compile_relu_compile_error(const CompileRequest& request);
CompiledPointer compile_relu_runtime_error(const CompileRequest& request);
CompiledPointer compile_relu_accuracy_error(const CompileRequest& request);
CompiledPointer compile_non_leaf_compile_error(const CompileRequest& request);

namespace {

// Runs the captured graph; binds captured tensors while planning it.
Backend on_captured(std::string name, std::string description, Compiler compile,
                    std::string tag = "debug") {
  return {.name = std::move(name),
          .description = std::move(description),
          .tags = {std::move(tag)},
          .binds_inputs = true,
          .compile = std::move(compile)};
}

// Differentiates ahead of time.
Backend on_halves(std::string name, std::string description, Compiler compile) {
  Backend made = on_captured(std::move(name), std::move(description), std::move(compile));
  made.compiles_halves = true;
  made.options = {
      {"lazy_backward", false, "compile the backward graph when backward is first called"}};
  return made;
}

// Generates kernels; `inductor` is what PyTorch's users call such a backend.
Backend generates_kernels(std::string name, std::string description) {
  Backend made = on_halves(std::move(name), std::move(description), &compile_native);
  made.tags = {};
  made.options.push_back(
      {"interpret", false, "execute the loops one instruction at a time, without a compiler"});
  return made;
}

}  // namespace

std::vector<Backend> own_backends() {
  return {
      on_captured("eager", "run the captured graph unchanged", &compile_eager),
      on_captured("eager_noexcept",
                  "eager, for graphs that must not raise: an exception is the backend's failure",
                  &compile_eager_noexcept),
      on_captured("pre_dispatch_eager",
                  "lower to operators before autograd, print that graph and run it",
                  &compile_pre_dispatch_eager),
      on_captured(
          "eager_debug",
          "eager, and check that every operator mutates and aliases only what its schema declares",
          &compile_eager_debug),
      on_captured("ts", "lower to operators and run them with TorchScript's executor", &compile_ts),
      on_halves("aot_eager",
                "differentiate ahead of time, then run forward and backward operator by operator",
                &compile_aot_eager),
      on_halves("aot_eager_default_partitioner",
                "aot_eager with the partitioner that saves what backward uses",
                &compile_aot_eager_default_partitioner),
      on_halves("invoke_subgraph", "aot_eager with each half behind one invoke_subgraph call",
                &compile_invoke_subgraph),
      on_halves("aot_ts",
                "differentiate ahead of time, then run both halves with TorchScript's executor",
                &compile_aot_ts),
      on_halves(
          "aot_eager_decomp_partition",
          "aot_eager with decompositions and the min-cut partitioner, as a kernel compiler gets it",
          &compile_aot_eager_decomp_partition),
      on_halves("aot_eager_decomp_partition_with_mode",
                "aot_eager_decomp_partition that logs every operator (TORCH_LOGS=+backends)",
                &compile_aot_eager_decomp_partition_with_mode),
      on_halves("aot_eager_decomp_partition_crossref",
                "aot_eager_decomp_partition that checks every value's dtype, sizes and strides "
                "against the graph",
                &compile_aot_eager_decomp_partition_crossref),
      generates_kernels("native",
                        "differentiate ahead of time, then compile fused CPU kernels in C++"),
      generates_kernels("inductor", "another name of native"),
      on_captured("relu_compile_error_TESTING_ONLY", "eager, but rejects graphs that call relu",
                  &compile_relu_compile_error, "testing"),
      on_captured("relu_runtime_error_TESTING_ONLY", "eager, but relu raises",
                  &compile_relu_runtime_error, "testing"),
      on_captured("relu_accuracy_error_TESTING_ONLY", "eager, but relu returns wrong values",
                  &compile_relu_accuracy_error, "testing"),
      on_captured("non_leaf_compile_error_TESTING_ONLY",
                  "eager, but rejects inputs that require grad and are not leaves",
                  &compile_non_leaf_compile_error, "testing"),
  };
}

}  // namespace assay::backends
