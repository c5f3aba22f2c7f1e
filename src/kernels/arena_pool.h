/// \file The memory in which compiled programs keep their intermediate buffers. Calls follow each
/// other, so all programs use one block, as large as the largest of them needs; calls at the same
/// time, and calls inside calls, have blocks of their own. So a model of many graphs, or a graph
/// compiled for many sizes, takes no more than the largest, and its memory is warm.
#pragma once

#include <cstddef>
#include <utility>

namespace assay::kernels {

/// A block, from the pool for as long as this lives. Aligned as ATen aligns memory.
class ArenaBlock {
 public:
  ArenaBlock() = default;
  explicit ArenaBlock(std::size_t bytes);  ///< At least so many. With 0 there is none.
  ~ArenaBlock();
  ArenaBlock(ArenaBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ArenaBlock& operator=(ArenaBlock&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// While it lives, the pool keeps idle blocks of up to so many bytes: one in each program.
class ArenaDemand {
 public:
  explicit ArenaDemand(std::size_t bytes);
  ~ArenaDemand();
  ArenaDemand(const ArenaDemand&) = delete;
  ArenaDemand& operator=(const ArenaDemand&) = delete;

 private:
  std::size_t bytes_;
};

/// What idle blocks take; for tests.
std::size_t idle_arena_bytes();

}  // namespace assay::kernels
