// Alone in its file: where g++ can inline only one of a replaced new and delete it sees a mismatch.
#include "count_allocations.h"

#include <cstdlib>
#include <new>

namespace {

thread_local long allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Of std::stable_sort, for one: memory of the library's own form must not come here to be freed.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace assay::observe {

long allocations_of_this_thread() { return allocations; }

}  // namespace assay::observe
