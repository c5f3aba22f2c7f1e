#include "kernels/arena_pool.h"

#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <vector>

namespace assay::kernels {

namespace {

struct IdleBlock {
  char* data;
  std::size_t bytes;
};

class ArenaPool {
 public:
  IdleBlock take(std::size_t bytes) {
    IdleBlock too_small = {};
    {
      const std::lock_guard lock(mutex_);
      // Sorted by size: the first that is large enough.
      const auto found = std::ranges::lower_bound(idle_, bytes, {}, &IdleBlock::bytes);
      if (found != idle_.end()) {
        const IdleBlock block = *found;
        idle_.erase(found);
        return block;
      }
      if (!idle_.empty()) {  // a larger one takes its place
        too_small = idle_.back();
        idle_.pop_back();
      }
    }
    free(too_small);
    return {static_cast<char*>(c10::alloc_cpu(bytes)), bytes};
  }

  void give_back(IdleBlock block) {
    {
      const std::lock_guard lock(mutex_);
      if (!demands_.empty() && block.bytes <= *demands_.rbegin()) {
        idle_.insert(std::ranges::upper_bound(idle_, block.bytes, {}, &IdleBlock::bytes), block);
        return;
      }
    }
    free(block);
  }

  void add_demand(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    demands_.insert(bytes);
  }

  void remove_demand(std::size_t bytes) {
    std::vector<IdleBlock> unwanted;
    {
      const std::lock_guard lock(mutex_);
      demands_.erase(demands_.find(bytes));
      const std::size_t largest = demands_.empty() ? 0 : *demands_.rbegin();
      const auto first = std::ranges::upper_bound(idle_, largest, {}, &IdleBlock::bytes);
      unwanted.assign(first, idle_.end());
      idle_.erase(first, idle_.end());
    }
    for (const IdleBlock& block : unwanted) free(block);
  }

  std::size_t idle_bytes() {
    const std::lock_guard lock(mutex_);
    return std::accumulate(
        idle_.begin(), idle_.end(), std::size_t{0},
        [](std::size_t sum, const IdleBlock& block) { return sum + block.bytes; });
  }

 private:
  static void free(const IdleBlock& block) {
    if (block.data != nullptr) c10::free_cpu(block.data);
  }

  std::mutex mutex_;
  std::vector<IdleBlock> idle_;  // sorted by size
  std::multiset<std::size_t> demands_;
};

ArenaPool& pool() {
  static auto* const shared = new ArenaPool;
  return *shared;
}

}  // namespace

ArenaBlock::ArenaBlock(std::size_t bytes) {
  if (bytes == 0) return;
  const IdleBlock block = pool().take(bytes);
  data_ = block.data;
  bytes_ = block.bytes;
}

ArenaBlock::~ArenaBlock() {
  if (data_ != nullptr) pool().give_back({data_, bytes_});
}

ArenaDemand::ArenaDemand(std::size_t bytes) : bytes_(bytes) {
  if (bytes_ != 0) pool().add_demand(bytes_);
}

ArenaDemand::~ArenaDemand() {
  if (bytes_ != 0) pool().remove_demand(bytes_);
}

std::size_t idle_arena_bytes() { return pool().idle_bytes(); }

}  // namespace assay::kernels
