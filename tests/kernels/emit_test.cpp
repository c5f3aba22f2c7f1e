#include "kernels/emit.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "guarded_memory.h"
#include "kernel_builder.h"
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
  if (cuts == nullptr) return function(arguments.data(), 0, kernel.points);
  for (std::int64_t at = 0; at < kernel.points;) {
    const auto units = static_cast<std::int64_t>(1 + (*cuts)() % 9);
    const std::int64_t next = std::min<std::int64_t>(kernel.points, at + units * kernel.unit);
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

constexpr std::array kModes = {Kernel::Vectorize::none, Kernel::Vectorize::inner,
                               Kernel::Vectorize::outer};

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

// Rows of a matrix: their largest and smallest elements and where these are.
TEST(Reductions, NanAndTiesAreAsInEager) {
  constexpr std::int64_t kRows = 40;
  constexpr std::int64_t kColumns = 150;
  for (const Kernel::Vectorize mode : kModes) {
    KernelBuilder k;
    const BufferId x = k.buffer(ScalarType::Float, kRows * kColumns);
    k.pass({kColumns});
    const ValueId value = k.access(Op::load, x, {kColumns, 1});
    const ValueId position = k.index({0, 1});
    std::vector<ValueId> results;
    for (const Op op : {Op::reduce_max, Op::reduce_min}) {
      results.push_back(k.add(op, ScalarType::Float, {value}));
    }
    for (const Op op : {Op::reduce_argmax, Op::reduce_argmin}) {
      results.push_back(k.add(op, ScalarType::Long, {value, position}));
    }
    k.pass({});
    for (std::size_t r = 0; r < results.size(); ++r) {
      const BufferId y = k.buffer(r < 2 ? ScalarType::Float : ScalarType::Long, kRows);
      k.access(Op::store, y, {1}, {results[r]});
    }
    const LoopProgram program = k.finish({kRows}, mode);
    const EmittedProgram emitted = emit(program, native_target());
    const auto library = compile_and_load(emitted.code);
    const auto expected = make_memory(program, 3);
    const auto found = make_memory(program, 3);
    std::mt19937 random(5);
    for (const auto* memory : {&expected, &found}) {
      std::mt19937 same = random;
      auto* numbers = reinterpret_cast<float*>((*memory)[x]->data());
      for (std::int64_t row = 0; row < kRows; ++row) {
        float* start = numbers + row * kColumns;
        const auto at = same() % kColumns;
        if (row % 4 == 1) start[at] = start[(at * 7) % kColumns] = NAN;
        if (row % 4 == 2) start[at] = row % 8 == 2 ? INFINITY : -INFINITY;
        if (row % 4 == 3) {
          std::fill(start, start + kColumns, row % 8 == 3 ? -INFINITY : INFINITY);
        }
      }
    }
    ASSERT_EQ(interpret(std::get<Kernel>(program.steps[0]), program, pointers(expected)), nullptr);
    ASSERT_EQ(run_kernel(*library, emitted.kernels[0], pointers(found), nullptr), 0);
    for (std::size_t b = 1; b < program.buffers.size(); ++b) {
      EXPECT_EQ(first_difference(program.buffers[b].dtype, expected[b]->bytes(), found[b]->bytes()),
                -1)
          << "result " << b << " with vectorize " << static_cast<int>(mode) << "\n"
          << emitted.code;
    }
  }
}

TEST(Reductions, SumsAreAsAccurateAsEagers) {
  constexpr std::int64_t kLength = 1'000'003;
  const at::Tensor numbers = at::rand({kLength});
  const double exact = numbers.to(at::kDouble).sum().item<double>();
  const double eager = std::fabs(numbers.sum().item<double>() - exact);
  for (const Kernel::Vectorize mode : kModes) {
    KernelBuilder k;
    const BufferId x = k.buffer(ScalarType::Float, kLength);
    const BufferId y = k.buffer(ScalarType::Float, 1);
    k.pass({kLength});
    const ValueId sum = k.add(Op::reduce_sum, ScalarType::Float, {k.access(Op::load, x, {0, 1})});
    k.pass({});
    k.access(Op::store, y, {0}, {sum});
    const LoopProgram program = k.finish({1}, mode);
    const EmittedProgram emitted = emit(program, native_target());
    const auto library = compile_and_load(emitted.code);
    float result = 0;
    ASSERT_EQ(run_kernel(*library, emitted.kernels[0], {numbers.data_ptr(), &result}, nullptr), 0);
    // A few units in the last place of the result, as eager's.
    EXPECT_LE(std::fabs(result - exact), std::max(2 * eager, 4 * 0.03125))
        << static_cast<int>(mode);
  }
}

// Returns 1 + the number of the check that failed, and reads nothing that was not checked.
TEST(Checks, TellWhichOneFailed) {
  constexpr std::int64_t kSize = 100;
  for (const Kernel::Vectorize mode : kModes) {
    KernelBuilder k;
    const BufferId indices = k.buffer(ScalarType::Long, kSize);
    const BufferId table = k.buffer(ScalarType::Float, 10);
    const BufferId y = k.buffer(ScalarType::Float, kSize);
    k.pass({});
    const ValueId at = k.access(Op::load, indices, {1});
    k.check(k.add(Op::ge, ScalarType::Bool, {at, k.constant(ScalarType::Long, 0)}), "negative");
    k.check(k.add(Op::lt, ScalarType::Bool, {at, k.constant(ScalarType::Long, 10)}), "too large");
    k.access(Op::store, y, {1}, {k.access(Op::load_indirect, table, {0}, {at})});
    const LoopProgram program = k.finish({kSize}, mode);
    const EmittedProgram emitted = emit(program, native_target());
    const auto library = compile_and_load(emitted.code);
    for (const std::int64_t place : {0, 17, 63, 97, 99}) {
      const auto memory = make_memory(program, 1);
      auto* numbers = reinterpret_cast<std::int64_t*>(memory[indices]->data());
      for (std::int64_t i = 0; i < kSize; ++i) numbers[i] = i % 10;
      EXPECT_EQ(run_kernel(*library, emitted.kernels[0], pointers(memory), nullptr), 0);
      numbers[place] = std::int64_t{1} << 40;
      EXPECT_EQ(run_kernel(*library, emitted.kernels[0], pointers(memory), nullptr), 2) << place;
      numbers[place] = -(std::int64_t{1} << 40);
      EXPECT_EQ(run_kernel(*library, emitted.kernels[0], pointers(memory), nullptr), 1) << place;
    }
  }
}

// More scratch than fits on a stack: every thread has its own.
TEST(Scratch, MayBeLarge) {
  constexpr std::int64_t kLength = 300'000;
  for (const Kernel::Vectorize mode : {Kernel::Vectorize::none, Kernel::Vectorize::inner}) {
    KernelBuilder k;
    const BufferId x = k.buffer(ScalarType::Double, 2 * kLength);
    const BufferId row = k.buffer(ScalarType::Double, kLength, Buffer::Kind::scratch);
    const BufferId y = k.buffer(ScalarType::Double, 2 * kLength);
    k.pass({kLength});
    const ValueId twice =
        k.add(Op::square, ScalarType::Double, {k.access(Op::load, x, {kLength, 1})});
    k.access(Op::store, row, {0, 1}, {twice});
    k.pass({kLength});
    k.access(Op::store, y, {kLength, 1}, {k.access(Op::load, row, {0, 1})});
    compare_with_interpreter(k.finish({2}, mode), native_target(), 9);
  }
}

// A matrix and a transposed one, with edges that do not fill a tile.
TEST(Tiles, TransposeWhatIsReadAcrossTheRows) {
  for (const ScalarType dtype : {ScalarType::Float, ScalarType::Double, ScalarType::Short,
                                 ScalarType::Bool, ScalarType::Long}) {
    for (const std::int64_t rows : {16, 33, 64, 70}) {
      for (const std::int64_t columns : {16, 47, 64, 65}) {
        KernelBuilder k;
        const BufferId x = k.buffer(dtype, 3 * rows * columns);
        const BufferId t = k.buffer(dtype, 3 * rows * columns);
        const BufferId y = k.buffer(dtype, 3 * rows * columns);
        k.pass({});
        const ValueId a = k.access(Op::load, x, {rows * columns, columns, 1});
        const ValueId b = k.access(Op::load, t, {rows * columns, 1, rows});
        k.access(Op::store, y, {rows * columns, columns, 1}, {k.add(Op::maximum, dtype, {a, b})});
        compare_with_interpreter(k.finish({3, rows, columns}, Kernel::Vectorize::inner),
                                 native_target(), 4);
      }
    }
  }
}

}  // namespace
}  // namespace assay::kernels
