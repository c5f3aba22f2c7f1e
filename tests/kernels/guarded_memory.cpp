#include "guarded_memory.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

namespace assay::kernels {

namespace {

using c10::ScalarType;

template <typename Element>
void fill(std::span<std::byte> bytes, std::mt19937& random, bool has_negative) {
  std::uniform_int_distribution<> numbers(has_negative ? -8 : 0, 8);
  for (std::size_t at = 0; at + sizeof(Element) <= bytes.size(); at += sizeof(Element)) {
    const auto value = static_cast<Element>(static_cast<float>(numbers(random)));
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

}  // namespace

GuardedMemory::GuardedMemory(std::size_t bytes) : size_(bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t used = (bytes + page - 1) / page * page;
  mapped_ = used + page;
  pages_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(static_cast<std::byte*>(pages_) + used, page, PROT_NONE);
  data_ = static_cast<std::byte*>(pages_) + used - bytes;
}

GuardedMemory::~GuardedMemory() { munmap(pages_, mapped_); }

std::vector<std::unique_ptr<GuardedMemory>> make_memory(const LoopProgram& program, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<GuardedMemory>> memory;
  for (const Buffer& buffer : program.buffers) {
    memory.push_back(std::make_unique<GuardedMemory>(static_cast<std::size_t>(buffer.elements) *
                                                     c10::elementSize(buffer.dtype)));
    const std::span<std::byte> bytes = memory.back()->bytes();
    switch (buffer.dtype) {
      case ScalarType::Bool:
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 2);
        break;
      case ScalarType::Byte:
        fill<std::uint8_t>(bytes, random, false);
        break;
      case ScalarType::Char:
        fill<std::int8_t>(bytes, random, true);
        break;
      case ScalarType::Short:
        fill<std::int16_t>(bytes, random, true);
        break;
      case ScalarType::Int:
        fill<std::int32_t>(bytes, random, true);
        break;
      case ScalarType::Long:
        fill<std::int64_t>(bytes, random, true);
        break;
      case ScalarType::Half:
        fill<c10::Half>(bytes, random, true);
        break;
      case ScalarType::BFloat16:
        fill<c10::BFloat16>(bytes, random, true);
        break;
      case ScalarType::Float:
        fill<float>(bytes, random, true);
        break;
      default:
        fill<double>(bytes, random, true);
        break;
    }
  }
  return memory;
}

}  // namespace assay::kernels
