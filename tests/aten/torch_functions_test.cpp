// The Python-level functions in a process that has no Python: that they are found, bind their
// arguments as Python does, and refuse as Python does. That they compute what eager computes is
// tested by tests/conformance, against eager itself.
#include "aten/torch_functions.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "aten/functions/operand.h"
#include "aten/resolve.h"

namespace assay::aten {
namespace {

Value integer(std::int64_t number) { return Operand(number).value; }

Value call_by_name(graph::Op op, const std::string& name, const Arguments& arguments) {
  return call(resolve(op, graph::Target(name)), arguments, name);
}

Value call_function(const std::string& name, std::vector<Value> positional,
                    std::vector<Keyword> keywords = {}) {
  return call_by_name(graph::Op::call_function, name, {std::move(positional), std::move(keywords)});
}

Value call_method(const std::string& name, std::vector<Value> positional,
                  std::vector<Keyword> keywords = {}) {
  return call_by_name(graph::Op::call_method, name, {std::move(positional), std::move(keywords)});
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.detail().message;
  }
  return "accepted";
}

std::string binding_refusal(std::string_view parameters, std::size_t positional,
                            std::vector<Keyword> keywords = {}) {
  return refusal([&] {
    const BoundArguments bound("torch.f", parameters,
                               {std::vector<Value>(positional, integer(1)), std::move(keywords)});
  });
}

at::Tensor arange(std::int64_t count) {
  return run_tensor("aten::arange", {count}, {{"dtype", at::kFloat}});
}

TEST(BoundArguments, DefaultsKeywordsAndRest) {
  const BoundArguments bound(
      "f", "a, b=0.5, *rest, c='x', d=None, **more",
      {{integer(1), integer(2), integer(3)}, {{"c", Operand("y").value}, {"e", integer(4)}}});
  EXPECT_EQ(bound.integer("a"), 1);
  EXPECT_EQ(bound.number("b"), 2.0);
  EXPECT_EQ(unpack(bound["rest"]).size(), 1u);
  EXPECT_EQ(bound.text("c"), "y");
  EXPECT_TRUE(bound["d"].is_none());
  EXPECT_EQ(bound["more"].keys, std::vector<std::string>{"e"});
  EXPECT_THROW(bound["unknown"], InternalError);
}

TEST(BoundArguments, RefusesAsPythonDoes) {
  EXPECT_EQ(binding_refusal("a, b", 1), "f() missing 1 required argument: 'b'");
  EXPECT_EQ(binding_refusal("a, b, c", 0), "f() missing 3 required arguments: 'a', 'b', and 'c'");
  EXPECT_EQ(binding_refusal("a, b=1", 3),
            "f() takes from 1 to 2 positional arguments but 3 were given");
  EXPECT_EQ(binding_refusal("a, *, b=1", 2), "f() takes 1 positional argument but 2 were given");
  EXPECT_EQ(binding_refusal("a", 1, {{"a", integer(1)}}),
            "f() got multiple values for argument 'a'");
  EXPECT_EQ(binding_refusal("a", 1, {{"z", integer(1)}}),
            "f() got an unexpected keyword argument 'z'");
  const BoundArguments bound("torch.f", "a", {{Operand("text").value}, {}});
  EXPECT_EQ(refusal([&] { bound.tensor("a"); }), "f(): argument 'a' must be Tensor, not str");
}

TEST(TorchFunctions, NumbersFollowPython) {
  EXPECT_EQ(call_function("operator.floordiv", {integer(-7), integer(2)}).leaf.toInt(), -4);
  EXPECT_EQ(call_function("operator.mod", {integer(-7), integer(2)}).leaf.toInt(), 1);
  EXPECT_EQ(call_function("operator.truediv", {integer(1), integer(2)}).leaf.toDouble(), 0.5);
  EXPECT_EQ(call_function("operator.pow", {integer(2), integer(-1)}).leaf.toDouble(), 0.5);
  EXPECT_EQ(call_function("math_trunc", {Operand(2.7).value}).leaf.toInt(), 2);
  EXPECT_EQ(call_function("torch.sym_max", {integer(3), integer(5)}).leaf.toInt(), 5);
  const auto largest = integer(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(refusal([&] {
              call_function("operator.add", {largest, integer(1)});
            }),
            "the result of an integer operation does not fit in 64 bits");
}

TEST(TorchFunctions, IndexingGivesViews) {
  const at::Tensor x = arange(6).view({2, 3});
  const Value all = Value::sequence(Value::Kind::slice, {Value(), Value(), Value()});
  const at::Tensor column =
      tensor_of(call_function("operator.getitem", {Operand(x).value, tuple_of({all, integer(1)})}));
  EXPECT_TRUE(column.is_alias_of(x));
  call_function("operator.setitem", {Operand(x).value, integer(0), Operand(7.0).value});
  EXPECT_EQ(column[0].item<float>(), 7.0F);
}

TEST(TorchFunctions, MethodsThatAreNoOperators) {
  const Value x = Operand(arange(6).view({2, 3})).value;
  EXPECT_EQ(call_method("size", {x, integer(1)}).leaf.toInt(), 3);
  EXPECT_EQ(unpack(call_method("size", {x})).size(), 2u);
  EXPECT_EQ(tensor_of(call_method("long", {x})).scalar_type(), at::kLong);
  EXPECT_EQ(unpack(call_method("split", {x, integer(1)}, {{"dim", integer(1)}})).size(), 3u);
}

TEST(TorchFunctions, WhatPythonRegistersWorksWithoutPython) {
  const Value x = Operand(arange(4)).value;
  const at::Tensor converted = tensor_of(call_function(
      "torch.ops.prims.convert_element_type.default", {x, Operand(at::kDouble).value}));
  EXPECT_EQ(converted.scalar_type(), at::kDouble);
  const Value cpu = Operand(c10::Device("cpu")).value;
  EXPECT_EQ(
      tensor_of(call_function("torch.ops.prims.inductor_seeds.default", {integer(3), cpu})).numel(),
      3);
}

// Operators that take or return sizes and scalars, as graphs with symbols have them.
TEST(TorchFunctions, OperatorsOnSizesWorkBoxed) {
  const Value x = Operand(arange(6).view({2, 3})).value;
  EXPECT_EQ(call_function("torch.ops.aten.sym_size.int", {x, integer(1)}).leaf.toInt(), 3);
  EXPECT_EQ(call_function("torch.ops.aten.sym_stride.int", {x, integer(0)}).leaf.toInt(), 3);
  EXPECT_EQ(call_function("torch.ops.aten.sym_numel.default", {x}).leaf.toInt(), 6);
  EXPECT_EQ(call_function("torch.ops.aten.sym_storage_offset.default", {x}).leaf.toInt(), 0);
  const Value two = Operand(run_tensor("aten::scalar_tensor", {2})).value;
  EXPECT_EQ(call_function("torch.ops.aten._local_scalar_dense.default", {two}).leaf.toDouble(), 2);
  const Value message = Operand("no").value;
  EXPECT_TRUE(call_function("torch.ops.aten._assert_scalar.default", {Operand(true).value, message})
                  .is_none());
  EXPECT_ANY_THROW(
      call_function("torch.ops.aten._assert_scalar.default", {Operand(false).value, message}));
}

TEST(TorchFunctions, NamesThatNeedPythonAreRefused) {
  for (const char* name : {"torch.functional.lu", "torch.masked.sum", "torch.unknown"}) {
    EXPECT_NE(refusal([&] { call_function(name, {}); }).find("needs a Python process"),
              std::string::npos)
        << name;
  }
  // An operator of this name exists, with another meaning.
  EXPECT_NE(refusal([] {
              call_method("resize", {Operand(arange(2)).value});
            }).find("needs a Python process"),
            std::string::npos);
  EXPECT_TRUE(is_python_function("torch.functional.einsum"));
  EXPECT_TRUE(is_python_function("torch.Tensor.norm"));
  EXPECT_FALSE(is_python_function("torch.relu"));
}

}  // namespace
}  // namespace assay::aten
