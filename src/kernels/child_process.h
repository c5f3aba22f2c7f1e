/// \file Runs a program and waits for it, with a time limit; for the compiler (toolchain.cpp).
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace assay::kernels {

struct ChildResult {
  enum class Kind { exited, not_started, signaled, timed_out };
  Kind kind = Kind::not_started;
  int code = 0;        ///< Exit code, signal or errno.
  std::string output;  ///< What it wrote to stdout and stderr, in order.

  bool is_success() const { return kind == Kind::exited && code == 0; }
  /// `exited with 1`, `was killed by signal 11`, ...
  std::string describe() const;
};

/// `arguments[0]` is the program's path. The child and what it starts are killed at the limit.
ChildResult run_child(const std::vector<std::string>& arguments, std::chrono::milliseconds limit);

}  // namespace assay::kernels
