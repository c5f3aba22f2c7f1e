/// \file The CPU that kernels are written for. `emit` asks it for the width of vectors; the kernel
/// cache puts it into every key.
#pragma once

#include <string>

namespace assay::kernels {

struct Target {
  int vector_bytes = 16;  ///< Of one register: 64 with AVX-512, 32 with AVX2, 16 otherwise.
  std::string cpu;        ///< Tells CPUs apart whose machine code differs: model and features.
};

/// The CPU that this process runs on.
const Target& native_target();

}  // namespace assay::kernels
