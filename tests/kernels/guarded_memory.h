/// \file Memory for kernels under test.
#pragma once

#include <cstddef>
#include <memory>
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

}  // namespace assay::kernels
