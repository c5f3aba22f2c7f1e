/// \file The C++ compiler of the machine, as a child process: found once per process and checked
/// once per machine. The kernel cache calls `compile_library`; the backend asks `toolchain()`
/// first, and lets ATen run graphs when there is no compiler.
#pragma once

#include <string>
#include <vector>

#include "assay/error.h"

namespace assay::kernels {

struct Toolchain {
  std::string compiler;            ///< Path of the program.
  std::string identity;            ///< Changes when another version is installed at the same path.
  std::vector<std::string> flags;  ///< Everything but file names.
};

/// The compiler that the setting `cxx` names (CXX in the environment), else g++ or clang++ on the
/// PATH. nullptr if there is none that can build a library; that is logged as a warning, once. The
/// answer is kept until the setting changes.
const Toolchain* toolchain();

/// Generated code that the compiler did not accept. The message has the compiler's own output and
/// the path of the source, which is kept.
class KernelCompileError : public InternalError {
 public:
  using InternalError::InternalError;
};

/// Compiles the file `source` into the shared object `library`. Throws `KernelCompileError` if the
/// compiler fails or takes longer than the setting `compile_timeout`.
void compile_library(const Toolchain& toolchain, const std::string& source,
                     const std::string& library);

}  // namespace assay::kernels
