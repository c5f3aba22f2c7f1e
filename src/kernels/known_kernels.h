/// \file The kernels that this process has loaded, by their text. A model that is compiled for
/// another size has nearly the same kernels: only those that are new go to the compiler, and where
/// only numbers are new, a text that takes them as arguments, once for all sizes (the setting
/// `kernel_sizes`). The pipeline (compile.cpp) calls it; what is on disk is kernel_cache.h's.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/emit.h"
#include "kernels/kernel_cache.h"

namespace assay::kernels {

struct KnownKernel {
  void* function = nullptr;
  std::vector<std::int64_t> sizes;               ///< Passed after the buffers if there are any.
  std::shared_ptr<const LoadedLibrary> library;  ///< Keeps it loaded.
};

/// The machine code of each of the program's functions, in their order. Throws what
/// `compile_and_load` throws.
std::vector<KnownKernel> load_kernels(const EmittedProgram& program, const Target& target);

}  // namespace assay::kernels
