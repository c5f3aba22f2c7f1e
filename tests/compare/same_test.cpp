// What `same` says about a difference. Whether it sees one is compared with PyTorch's in
// test_same_stock.py.
#include "compare/same.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "compare_fixture.h"

namespace assay::compare {
namespace {

using at::Tensor;
using aten::Value;
using Kind = Comparison::Kind;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Kind kind_of(const Value& reference, const Value& result) {
  const Comparison found = same(reference, result);
  EXPECT_FALSE(found.same);
  EXPECT_FALSE(found.message.empty());
  return found.kind;
}

TEST(Same, NamesThePlace) {
  const Value left =
      list({value(at::ones({2})), dict({"logits", "n"}, {value(at::ones({3})), c10::IValue(3)})});
  Value right =
      list({value(at::ones({2})), dict({"n", "logits"}, {c10::IValue(3), value(at::zeros({3}))})});
  const Comparison found = same(left, right);
  EXPECT_FALSE(found.same);
  EXPECT_EQ(found.where, "[1]['logits']");
  EXPECT_EQ(found.error, 1);
  EXPECT_TRUE(same(left, left).same);
}

TEST(Same, TellsKindsApart) {
  const Value ones = value(at::ones({2, 2}));
  EXPECT_EQ(kind_of(ones, value(at::zeros({2, 2}))), Kind::values);
  EXPECT_EQ(kind_of(ones, value(at::full({2, 2}, kNan))), Kind::nan);
  EXPECT_EQ(kind_of(ones, value(at::ones({2, 2}, at::kDouble))), Kind::dtype);
  EXPECT_EQ(kind_of(ones, value(at::ones({2, 1}))), Kind::shape);
  EXPECT_EQ(kind_of(ones, list({ones})), Kind::structure);
  EXPECT_EQ(kind_of(list({ones}), list({})), Kind::structure);
  EXPECT_EQ(kind_of(dict({"a"}, {ones}), dict({"b"}, {ones})), Kind::structure);
  EXPECT_EQ(kind_of(ones, Value()), Kind::structure);
  EXPECT_EQ(kind_of(Value(), ones), Kind::structure);
  EXPECT_EQ(kind_of(c10::IValue("a"), c10::IValue("b")), Kind::values);
  EXPECT_EQ(kind_of(ones, value(at::ones({2, 2}).to_sparse())), Kind::structure);
}

TEST(Same, IntegersAreEqualOrNot) {
  const Tensor large = at::full({3}, 5'000'000, at::kLong);
  const Comparison found = same(value(large), value(large.add(1)), nullptr, {.tol = 1e-2});
  EXPECT_EQ(found.kind, Kind::integers);
  EXPECT_EQ(found.message, "3 of 3 integers differ, by up to 1");
  EXPECT_EQ(kind_of(value(at::ones({2}, at::kBool)), value(at::zeros({2}, at::kBool))),
            Kind::integers);
  EXPECT_EQ(kind_of(c10::IValue(3), c10::IValue(4)), Kind::integers);
}

TEST(Same, ADifferenceInFloatingPointComesFirst) {
  const Value mask = value(at::ones({2}, at::kBool));
  const Value other_mask = value(at::zeros({2}, at::kBool));
  const Value ones = value(at::ones({2}));
  const Value zeros = value(at::zeros({2}));
  const Comparison found =
      same(list({mask, list({ones}), mask}), list({other_mask, list({zeros}), other_mask}));
  EXPECT_EQ(found.kind, Kind::values);
  EXPECT_EQ(found.where, "[1][0]");
  const Comparison masks = same(list({ones, mask, mask}), list({ones, mask, other_mask}));
  EXPECT_EQ(masks.where, "[2]");
}

TEST(Same, CountsWhatIsNotCompared) {
  const Value left = list({value(at::ones({2})), value(at::ones({2}, at::kLong)), c10::IValue(3)});
  const Value right =
      list({value(at::ones({2})), value(at::zeros({2}, at::kLong)), c10::IValue(4)});
  const Comparison found = same(left, right, nullptr, {.ignore_non_fp = true});
  EXPECT_TRUE(found.same);
  EXPECT_EQ(found.not_compared, 2);
  EXPECT_EQ(same(left, left).not_compared, 0);
}

TEST(Same, JudgesByTheFloat64Reference) {
  const Tensor exact = at::randn({2000}, at::kDouble);
  const Tensor noise = at::randn({2000}, at::kDouble);
  const auto off_by = [&](double error) {
    return value(exact.add(noise.mul(error)).to(at::kFloat));
  };
  const Value judge = value(exact);

  const Comparison twice = same(off_by(0.01), off_by(-0.018), &judge);
  EXPECT_TRUE(twice.same);
  EXPECT_NEAR(twice.error, 0.018, 0.002);
  EXPECT_NEAR(twice.reference_error, 0.01, 0.001);
  EXPECT_FALSE(twice.compiled_is_closer);

  const Comparison thrice = same(off_by(0.01), off_by(-0.03), &judge);
  EXPECT_FALSE(thrice.same);
  EXPECT_GT(thrice.error, thrice.tolerance);

  const Comparison closer = same(off_by(0.01), off_by(0.001), &judge);
  EXPECT_TRUE(closer.same);
  EXPECT_TRUE(closer.compiled_is_closer);
  EXPECT_FALSE(same(off_by(0.01), off_by(0.001)).same) << "without a reference they are not close";
}

TEST(Same, NanInTheReferenceIsNoAgreement) {
  const Value judge = value(at::full({3}, kNan, at::kDouble));
  const Comparison found =
      same(value(at::ones({3})), value(at::zeros({3})), &judge, {.equal_nan = true});
  EXPECT_FALSE(found.same);
  EXPECT_EQ(found.kind, Kind::reference);
  EXPECT_TRUE(same(value(at::ones({3})), value(at::ones({3})), &judge).same)
      << "what is close needs no judge";
}

TEST(Same, AnInfinityDecidesOnlyForItsElement) {
  const auto row = [](double first, double second, at::ScalarType dtype) {
    Tensor made = at::zeros({2}, dtype);
    made[0] = first;
    made[1] = second;
    return value(made);
  };
  // Eager overflowed, as half precision does; so may the result. The other element must be right.
  const Value judge = row(70000, 1, at::kDouble);
  const Value eager = row(kInfinity, 1, at::kHalf);
  EXPECT_TRUE(same(eager, row(kInfinity, 1.001, at::kHalf), &judge, {.tol = 1e-2}).same);
  EXPECT_FALSE(same(eager, row(kInfinity, 5, at::kHalf), &judge).same);
  EXPECT_FALSE(same(eager, row(-kInfinity, 1, at::kHalf), &judge).same);
  EXPECT_FALSE(same(eager, row(12, 1, at::kHalf), &judge).same);
}

TEST(Same, DtypesThatHaveFewOperators) {
  const Tensor numbers = at::arange(4, at::kFloat);
  for (const at::ScalarType dtype : {at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kComplexHalf,
                                     at::kUInt16, at::kUInt32, at::kUInt64}) {
    const Value left = value(numbers.to(dtype));
    EXPECT_TRUE(same(left, left).same) << dtype;
    const bool is_integer = c10::isIntegralType(dtype, /*includeBool=*/false);
    EXPECT_EQ(kind_of(left, value(numbers.flip(0).to(dtype))),
              is_integer ? Kind::integers : Kind::values)
        << dtype;
  }
}

TEST(Same, AnOperatorsListIsAList) {
  const std::vector<Tensor> parts = at::arange(6).chunk(2);
  EXPECT_TRUE(same(c10::IValue(parts), list({value(parts[0]), value(parts[1])})).same);
}

}  // namespace
}  // namespace assay::compare
