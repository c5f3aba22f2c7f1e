/// \file Random kernels of the loop IR, with memory for them: what the tests of the emitter run and
/// compare with the interpreter.
#pragma once

#include <cstddef>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

/// Memory whose last byte is followed by a page that cannot be touched.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  void* pages_ = nullptr;
  std::size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// One block of memory per buffer, filled with small numbers of its dtype.
std::vector<std::unique_ptr<GuardedMemory>> make_memory(const LoopProgram& program, unsigned seed);

struct RandomKernelOptions {
  Kernel::Vectorize vectorize = Kernel::Vectorize::none;
  int instructions = 12;
};

/// Adds a kernel of random loops, accesses and operations to the program, with buffers of its own.
/// Whatever it computes is exact, so that every correct implementation gives the same bits.
void add_random_kernel(LoopProgram& program, std::mt19937& random,
                       const RandomKernelOptions& options);

}  // namespace assay::kernels
