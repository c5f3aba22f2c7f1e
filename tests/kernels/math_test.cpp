/// \file The functions of generated code, against references with more digits.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "kernels/emit.h"
#include "kernels/kernel_cache.h"

namespace assay::kernels {
namespace {

using c10::ScalarType;

// y = op(x) over `count` elements.
void add_unary_kernel(LoopProgram& program, Op op, ScalarType dtype, std::int64_t count,
                      Kernel::Vectorize vectorize) {
  for (int k = 0; k < 2; ++k) {
    Buffer buffer;
    buffer.kind = k == 0 ? Buffer::Kind::input : Buffer::Kind::intermediate;
    buffer.name = k == 0 ? "x" : "y";
    buffer.dtype = dtype;
    buffer.elements = count;
    program.buffers.push_back(buffer);
  }
  const auto first = static_cast<BufferId>(program.buffers.size() - 2);
  Kernel kernel;
  kernel.name = std::string(to_string(op)) + "_of_" + c10::toString(dtype);
  kernel.outer = {count};
  kernel.vectorize = vectorize;
  Pass pass;
  Instruction load;
  load.op = Op::load;
  load.dtype = dtype;
  load.buffer = first;
  load.index.coefficients = {1};
  Instruction compute;
  compute.op = op;
  compute.dtype = dtype;
  compute.operands = {0};
  Instruction store = load;
  store.op = Op::store;
  store.buffer = first + 1;
  store.operands = {1};
  pass.body = {load, compute, store};
  kernel.passes.push_back(pass);
  program.steps.emplace_back(kernel);
}

struct MathCase {
  Op op;
  long double (*reference)(long double);
  double low;
  double high;
  double units;              // in the last place
  bool is_imported = false;  // at the edges of its range it is what ATen's is
};

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<MathCase>& math_cases() {
  static const std::vector<MathCase> cases = {
      {Op::exp, std::exp, -110, 90, 1.5},
      {Op::exp2, std::exp2, -155, 130, 1.5},
      {Op::expm1, std::expm1, -30, 89, 2},
      {Op::log, std::log, 0, 1e30, 2},
      {Op::log2, std::log2, 0, 1e30, 2},
      {Op::log10, std::log10, 0, 1e30, 2},
      {Op::log1p, std::log1p, -1, 1e10, 2},
      {Op::tanh, std::tanh, -10, 10, 2.5},
      {Op::sigmoid, sigmoid, -80, 80, 3},
      {Op::erf, std::erf, -5, 5, 2.2},
      {Op::sin, std::sin, -1e5, 1e5, 2},
      {Op::cos, std::cos, -1e5, 1e5, 2},
      {Op::tan, std::tan, -100, 100, 2, true},
      {Op::asin, std::asin, -1, 1, 2, true},
      {Op::acos, std::acos, -1, 1, 2, true},
      {Op::atan, std::atan, -100, 100, 2, true},
      {Op::sinh, std::sinh, -89.4, 89.4, 4},
      {Op::cosh, std::cosh, -89.4, 89.4, 4},
      {Op::asinh, std::asinh, -1e10, 1e10, 2, true},
      {Op::acosh, std::acosh, 1, 1e10, 2, true},
      {Op::atanh, std::atanh, -1, 1, 2, true},
      {Op::erfc, std::erfc, -5, 9, 3, true},
      {Op::sqrt, std::sqrt, 0, 1e30, 0.5},
  };
  return cases;
}

// Numbers of every magnitude, and what is special.
template <typename Number>
std::vector<Number> inputs(const MathCase& math, std::size_t count) {
  using Limits = std::numeric_limits<Number>;
  std::vector<Number> result = {Number(0),
                                -Number(0),
                                Limits::infinity(),
                                -Limits::infinity(),
                                Limits::quiet_NaN(),
                                Limits::denorm_min(),
                                -Limits::denorm_min(),
                                Limits::min(),
                                -Limits::min(),
                                Limits::max(),
                                Limits::lowest(),
                                Number(1),
                                Number(-1),
                                Limits::epsilon(),
                                Number(1) - Limits::epsilon() / 2};
  std::mt19937 random(7);
  std::uniform_real_distribution<double> even(math.low, math.high);
  std::uniform_real_distribution<double> exponent(-40, std::log10(std::fabs(math.high) + 1));
  while (result.size() < count) {
    result.push_back(static_cast<Number>(even(random)));
    const double power = std::pow(10, exponent(random));
    result.push_back(static_cast<Number>(math.low < 0 && random() % 2 == 0 ? -power : power));
    if (math.low >= 0) continue;
    result.push_back(static_cast<Number>(1 + (exponent(random) + 20) * 1e-4));
  }
  result.resize(count);
  return result;
}

template <typename Number>
void check_function(const MathCase& math, ScalarType dtype) {
  constexpr std::int64_t kCount = 20'003;
  LoopProgram program;
  add_unary_kernel(program, math.op, dtype, kCount, Kernel::Vectorize::inner);
  add_unary_kernel(program, math.op, dtype, kCount, Kernel::Vectorize::none);
  const EmittedProgram emitted = emit(program, native_target());
  const auto library = compile_and_load(emitted.code);
  std::vector<Number> x = inputs<Number>(math, kCount);
  std::vector<std::vector<Number>> results(2, std::vector<Number>(kCount));
  for (std::size_t k = 0; k < 2; ++k) {
    const EmittedKernel& kernel = emitted.kernels[k];
    auto function =
        reinterpret_cast<int (*)(void* const*, long, long)>(library->symbol(kernel.symbol));
    const std::array<void*, 2> buffers = {x.data(), results[k].data()};
    ASSERT_EQ(function(buffers.data(), 0, kernel.points), 0);
  }
  double worst = 0;
  Number worst_at = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const long double wide = math.reference(static_cast<long double>(x[k]));
    const auto expected = static_cast<Number>(wide);
    for (const auto& result : results) {
      const Number found = result[k];
      if (math.is_imported &&
          !(std::fabs(expected) > std::numeric_limits<Number>::min() && std::fabs(x[k]) < 1e15)) {
        continue;
      }
      if (std::isnan(expected) || std::isinf(expected) || std::isinf(found)) {
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(found)) << to_string(math.op) << "(" << x[k] << ") = " << found;
        } else {
          // At the edge of the range either neighbor is within the bound.
          const bool is_edge = std::fabs(wide) > 0.9999999L * std::numeric_limits<Number>::max();
          EXPECT_TRUE(found == expected || is_edge)
              << to_string(math.op) << "(" << x[k] << ") = " << found << ", not " << expected;
        }
        continue;
      }
      ASSERT_FALSE(std::isnan(found)) << to_string(math.op) << "(" << x[k] << ")";
      EXPECT_EQ(std::signbit(found), std::signbit(expected))
          << to_string(math.op) << "(" << x[k] << ") = " << found;
      const long double unit =
          std::nextafter(std::fabs(expected), std::numeric_limits<Number>::infinity()) -
          std::fabs(expected);
      const auto error = static_cast<double>(std::fabs(found - wide) / unit);
      if (error > worst) {
        worst = error;
        worst_at = x[k];
      }
    }
  }
  EXPECT_LE(worst, math.units) << to_string(math.op) << " of " << c10::toString(dtype) << " at "
                               << worst_at;
  testing::Test::RecordProperty(std::string(to_string(math.op)) + c10::toString(dtype),
                                std::to_string(worst));
}

TEST(Math, ErrorsAreAFewUnitsInTheLastPlace) {
  for (const MathCase& math : math_cases()) {
    check_function<float>(math, ScalarType::Float);
    check_function<double>(math, ScalarType::Double);
  }
}

}  // namespace
}  // namespace assay::kernels
