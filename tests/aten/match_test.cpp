#include "aten/match.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "aten/call.h"
#include "aten/operators.h"

namespace assay::aten {
namespace {

Value tensor() { return c10::IValue(at::ones({2, 3})); }
Value integer(std::int64_t value) { return c10::IValue(value); }
Value list(std::vector<Value> items) {
  return Value::sequence(Value::Kind::list, std::move(items));
}
Value dtype_value(c10::ScalarType type) {
  return {Value::Kind::dtype, static_cast<std::int64_t>(type)};
}

std::string chosen(const std::string& name, const Arguments& arguments,
                   Dialect dialect = Dialect::function) {
  return match_overload(overloads(name), arguments, dialect, name).op.operator_name().overload_name;
}

TEST(Match, TheOverloadFollowsTheArguments) {
  EXPECT_EQ(chosen("aten::add", {{tensor(), tensor()}, {}}), "Tensor");
  EXPECT_EQ(chosen("aten::pow", {{tensor(), integer(2)}, {}}), "Tensor_Scalar");
  EXPECT_EQ(chosen("aten::pow", {{integer(2), tensor()}, {}}), "Scalar");
  EXPECT_EQ(chosen("aten::sum", {{tensor()}, {}}), "");
  EXPECT_EQ(chosen("aten::sum", {{tensor(), integer(1)}, {}}), "dim_IntList");
  EXPECT_EQ(
      chosen("aten::view", {{tensor(), dtype_value(c10::ScalarType::Int)}, {}}, Dialect::method),
      "dtype");
}

TEST(Match, SizesMayBeSpreadInPythonButNotInOperatorCalls) {
  const Arguments spread{{tensor(), integer(3), integer(2)}, {}};
  EXPECT_EQ(call("aten::view", spread, Dialect::method).leaf.toTensor().size(0), 3);
  EXPECT_THROW(call("aten::view", spread, Dialect::operator_call), UserError);
}

TEST(Match, ANumberIsANumberBeforeItIsAListOfOne) {
  EXPECT_EQ(chosen("aten::hsplit", {{tensor(), integer(3)}, {}}, Dialect::method), "int");
}

TEST(Match, NamesOfNumpyAndAnEmptyOut) {
  const Arguments numpy{{tensor()}, {{"axis", integer(1)}, {"keepdims", c10::IValue(true)}}};
  EXPECT_EQ(chosen("aten::sum", numpy), "dim_IntList");
  EXPECT_THROW(chosen("aten::sum", numpy, Dialect::operator_call), UserError);
  EXPECT_EQ(chosen("aten::mul", {{tensor(), tensor()}, {{"out", Value()}}}), "Tensor");
}

TEST(Match, OneNumberStandsForAListOfFixedLength) {
  const Value image = c10::IValue(at::ones({1, 1, 4, 4}));
  const Value pooled = call("aten::avg_pool2d", {{image, integer(2)}, {}});
  EXPECT_EQ(pooled.leaf.toTensor().size(3), 2);
}

TEST(Match, ANumberForATensorOnlyWherePyTorchAllowsIt) {
  const Value half = c10::IValue(0.5);
  std::string why;
  const auto add = c10::Dispatcher::singleton().findSchema({"aten::add", "Tensor"}).value();
  EXPECT_TRUE(match(add, {{tensor(), half}, {}}, Dialect::operator_call, why));
  const auto le = c10::Dispatcher::singleton().findSchema({"aten::le", "Tensor"}).value();
  EXPECT_FALSE(match(le, {{tensor(), half}, {}}, Dialect::operator_call, why));
  EXPECT_EQ(why, "argument 'other' should be Tensor, found float");
}

TEST(Match, TheReasonNamesTheArgument) {
  const auto relu = c10::Dispatcher::singleton().findSchema({"aten::relu", ""}).value();
  const auto reason = [&](const Arguments& arguments) {
    std::string why;
    EXPECT_FALSE(match(relu, arguments, Dialect::operator_call, why));
    return why;
  };
  EXPECT_EQ(reason({{}, {}}), "argument 'self' is missing");
  EXPECT_EQ(reason({{list({})}, {}}), "argument 'self' should be Tensor, found list");
  EXPECT_EQ(reason({{tensor()}, {{"self", tensor()}}}), "argument 'self' given twice");
  EXPECT_EQ(reason({{tensor()}, {{"inplace", integer(1)}}}), "has no argument 'inplace'");
}

}  // namespace
}  // namespace assay::aten
