/// \file The C++ compiler of the machine, as a child process: found and checked once per process.
/// The kernel cache calls `compile_library`; the backend asks `toolchain()` first, and lets ATen
/// run graphs when there is no compiler.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "assay/error.h"

namespace assay::kernels {

struct Toolchain {
  std::string compiler;            ///< Path of the program.
  std::string version;             ///< The first line of `--version`.
  std::vector<std::string> flags;  ///< Everything but file names.
};

/// The compiler that the setting `cxx` names (CXX in the environment), else g++ or clang++ on the
/// PATH. nullptr if there is none that can build a library; that is logged as a warning, once.
/// Looks again when the setting has changed.
const Toolchain* toolchain();

/// Generated code that the compiler did not accept. The message has the compiler's own output and
/// the path of the source.
class KernelCompileError : public InternalError {
 public:
  using InternalError::InternalError;
};

/// Compiles the file `source` into the shared object `library`. Throws `KernelCompileError` if the
/// compiler fails or takes longer than the setting `compile_timeout`.
void compile_library(const Toolchain& toolchain, const std::string& source,
                     const std::string& library);

}  // namespace assay::kernels
