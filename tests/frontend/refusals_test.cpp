// What cannot be a graph is a TraceError; with `fallback` it runs eagerly, with one warning.
#include <ATen/ops/complex.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>

#include "assay/compile.h"
#include "assay/error.h"
#include "support.h"

namespace assay {

namespace {

// Throws a TraceError with `words` in its message; runs eagerly if that is allowed.
template <typename Program, typename... Arguments>
void expect_refused(const Program& program, const std::string& words,
                    const Arguments&... arguments) {
  const auto strict = assay::compile(program);
  const std::string message = message_of<TraceError>([&] { strict(arguments...); });
  EXPECT_NE(message.find(words), std::string::npos) << message;
  EXPECT_EQ(strict.compilations(), 0u);
  const Warnings warnings;
  const auto lenient = assay::compile(program, {.fallback = true, .name = "lenient"});
  for (int round = 0; round < 2; ++round) {
    const at::Tensor found = lenient(arguments...);
    const at::Tensor expected = program(arguments...);
    if (!expected.is_sparse()) expect_same(found, expected);
  }
  EXPECT_EQ(lenient.compilations(), 0u);
  ASSERT_EQ(warnings.texts().size(), 1u);
  EXPECT_NE(warnings.texts()[0].find("running 'lenient' eagerly"), std::string::npos);
}

}  // namespace

TEST(Refusals, ReadingAValue) {
  expect_refused([](const at::Tensor& x) { return x * x.sum().item<double>(); },
                 "reads the value of a tensor", numbers({2}));
}

TEST(Refusals, TheMessageNamesTheFunctionWithoutDebugInformationToo) {
  const auto compiled =
      assay::compile([](const at::Tensor& x) { return x * x.sum().item<double>(); });
  const std::string message = message_of<TraceError>([&] { compiled(numbers({2})); });
  EXPECT_NE(message.find("WithoutDebugInformationToo_Test::TestBody()::{lambda"), std::string::npos)
      << message;
}

TEST(Refusals, ChoosingByAValue) {
  expect_refused([](const at::Tensor& x) { return x.sum().item<bool>() ? x * 2 : x; },
                 "reads the value of a tensor", numbers({2}));
}

// A functional graph would update each element once, and eager updates the shared one twice.
TEST(Refusals, WritingWhereElementsShareMemory) {
  const auto program = [](const at::Tensor& x) {
    x.as_strided({2, 2}, {1, 1}).add_(1);
    return x * 1;
  };
  const at::Tensor x = at::zeros({3});
  const auto refusing = assay::compile(program, {.backend = "aot_eager"});
  const std::string message = message_of<TraceError>([&] { refusing(x); });
  EXPECT_NE(message.find("whose elements overlap in memory"), std::string::npos) << message;
  expect_same(x, at::zeros({3}));
  const auto running = assay::compile(program, {.backend = "eager"});
  expect_same(running(x), program(at::zeros({3})));
}

TEST(Refusals, SizesThatDependOnValues) {
  expect_refused([](const at::Tensor& x) { return at::nonzero(x); },
                 "depends on the values of its arguments", numbers({2}));
  expect_refused([](const at::Tensor& x) { return x.masked_select(x > 0.3); },
                 "depends on the values of its arguments", numbers({4}));
}

TEST(Refusals, SparseInputs) {
  expect_refused([](const at::Tensor& x) { return x * 2; }, "sparse", numbers({2, 2}).to_sparse());
}

TEST(Refusals, ComplexInputs) {
  expect_refused([](const at::Tensor& x) { return x * 2; }, "complex",
                 at::complex(numbers({2}), numbers({2})));
}

TEST(Refusals, BackwardInside) {
  const auto compiled = assay::compile([](const at::Tensor& x) {
    const at::Tensor loss = x.pow(2).sum();
    loss.backward();
    return loss;
  });
  const at::Tensor x = leaf({2});
  const std::string message = message_of<TraceError>([&] { compiled(x); });
  EXPECT_NE(message.find("calls backward()"), std::string::npos) << message;
  EXPECT_FALSE(x.grad().defined());
}

TEST(Refusals, UndefinedResults) {
  const auto program = [](const at::Tensor& x) {
    return std::vector<at::Tensor>{x + 1, at::Tensor()};
  };
  const auto compiled = assay::compile(program);
  const std::string message = message_of<UserError>([&] { compiled(numbers({2})); });
  EXPECT_NE(message.find("returns an undefined tensor"), std::string::npos) << message;
  const auto lenient = assay::compile(program, {.fallback = true});
  const auto results = lenient(numbers({2}));
  expect_same(results[0], numbers({2}) + 1);
  EXPECT_FALSE(results[1].defined());
}

TEST(Refusals, TheNextCallMayBeFine) {
  const auto compiled = assay::compile(
      [](const at::Tensor& x, bool reads) { return reads ? x * x.sum().item<double>() : x + 1; });
  EXPECT_THROW(compiled(numbers({2}), true), TraceError);
  expect_same(compiled(numbers({2}), false), numbers({2}) + 1);
  EXPECT_THROW(compiled(numbers({2}), true), TraceError);
  EXPECT_EQ(compiled.compilations(), 1u);
}

TEST(Refusals, AProgramThatCatchesTheErrorIsRefusedAllTheSame) {
  const auto compiled = assay::compile([](const at::Tensor& x) {
    try {
      return x * x.sum().item<double>();
    } catch (const std::exception&) {
      return x;
    }
  });
  EXPECT_THROW(compiled(numbers({2})), TraceError);
}

}  // namespace assay
