#include "kernels/emit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/interpret.h"
#include "kernels/kernel_cache.h"
#include "random_kernel.h"

namespace assay::kernels {
namespace {

using c10::ScalarType;
using KernelFunction = int (*)(void* const*, long, long);

std::vector<void*> pointers(const std::vector<std::unique_ptr<GuardedMemory>>& memory) {
  std::vector<void*> result;
  for (const auto& block : memory) result.push_back(block->data());
  return result;
}

template <typename Element>
bool same_or_nan(const void* a, const void* b) {
  Element x;
  Element y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  return std::memcmp(&x, &y, sizeof x) == 0 ||
         (std::isnan(static_cast<double>(x)) && std::isnan(static_cast<double>(y)));
}

// The first element that differs in its bits; NaNs are alike. -1 if there is none.
std::int64_t first_difference(ScalarType dtype, std::span<const std::byte> a,
                              std::span<const std::byte> b) {
  const std::size_t width = c10::elementSize(dtype);
  for (std::size_t at = 0; at < a.size(); at += width) {
    const void* x = a.data() + at;
    const void* y = b.data() + at;
    const bool same = dtype == ScalarType::Float      ? same_or_nan<float>(x, y)
                      : dtype == ScalarType::Double   ? same_or_nan<double>(x, y)
                      : dtype == ScalarType::Half     ? same_or_nan<c10::Half>(x, y)
                      : dtype == ScalarType::BFloat16 ? same_or_nan<c10::BFloat16>(x, y)
                                                      : std::memcmp(x, y, width) == 0;
    if (!same) return static_cast<std::int64_t>(at / width);
  }
  return -1;
}

// Runs a kernel of the library: as a whole, or cut into random ranges.
int run_kernel(const LoadedLibrary& library, const EmittedKernel& kernel,
               const std::vector<void*>& buffers, std::mt19937* cuts) {
  std::vector<void*> arguments;
  for (const BufferId buffer : kernel.buffers) arguments.push_back(buffers[buffer]);
  auto function = reinterpret_cast<KernelFunction>(library.symbol(kernel.symbol));
  if (cuts == nullptr) return function(arguments.data(), 0, kernel.work_units);
  for (std::int64_t at = 0; at < kernel.work_units;) {
    const std::int64_t next = std::min<std::int64_t>(
        kernel.work_units, at + 1 + static_cast<std::int64_t>((*cuts)() % 9));
    if (const int failed = function(arguments.data(), at, next)) return failed;
    at = next;
  }
  return 0;
}

void compare_with_interpreter(const LoopProgram& program, const Target& target, unsigned seed) {
  const EmittedProgram emitted = emit(program, target);
  std::shared_ptr<const LoadedLibrary> library = compile_and_load(emitted.code, target);
  const auto expected = make_memory(program, seed);
  const auto whole = make_memory(program, seed);
  const auto cut = make_memory(program, seed);
  std::mt19937 cuts(seed);
  std::size_t k = 0;
  for (const Step& step : program.steps) {
    const auto& kernel = std::get<Kernel>(step);
    const EmittedKernel& found = emitted.kernels[k++];
    const char* message = interpret(kernel, program, pointers(expected));
    const int failed = run_kernel(*library, found, pointers(whole), nullptr);
    const int failed_cut =
        run_kernel(*library, found, pointers(cut), found.is_serial ? nullptr : &cuts);
    EXPECT_EQ(message != nullptr, failed != 0) << kernel.name;
    EXPECT_EQ(failed != 0, failed_cut != 0) << kernel.name;
    if (message != nullptr) continue;
    for (const BufferId buffer : found.buffers) {
      const Buffer& entry = program.buffers[buffer];
      const std::int64_t different =
          first_difference(entry.dtype, expected[buffer]->bytes(), whole[buffer]->bytes());
      const std::int64_t different_cut =
          first_difference(entry.dtype, whole[buffer]->bytes(), cut[buffer]->bytes());
      const std::size_t at = emitted.code.find("// kernel " + found.symbol + ":");
      const std::string text =
          emitted.code.substr(at, emitted.code.find("\n}\n", at) - at) + "\n}\n";
      ASSERT_EQ(different, -1) << entry.name << " of " << kernel.name << " differs from the "
                               << "interpreter (seed " << seed << ")\n"
                               << text;
      ASSERT_EQ(different_cut, -1)
          << entry.name << " of " << kernel.name << " depends on the ranges (seed " << seed << ")\n"
          << text;
    }
  }
}

class RandomKernels : public testing::TestWithParam<std::tuple<Kernel::Vectorize, int, unsigned>> {
};

TEST_P(RandomKernels, ComputeWhatTheInterpreterDoes) {
  const auto [vectorize, vector_bytes, seed] = GetParam();
  std::mt19937 random(seed);
  LoopProgram program;
  for (int k = 0; k < 30; ++k) add_random_kernel(program, random, {vectorize, 12});
  Target target = native_target();
  target.vector_bytes = std::min(target.vector_bytes, vector_bytes);
  compare_with_interpreter(program, target, seed);
}

INSTANTIATE_TEST_SUITE_P(Emit, RandomKernels,
                         testing::Combine(testing::Values(Kernel::Vectorize::none,
                                                          Kernel::Vectorize::inner,
                                                          Kernel::Vectorize::outer),
                                          testing::Values(16, 32, 64), testing::Range(0U, 4U)));

}  // namespace
}  // namespace assay::kernels
