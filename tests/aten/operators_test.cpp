#include "aten/operators.h"

#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <optional>

namespace assay::aten {
namespace {

// As a library does that is loaded while the program runs.
c10::RegistrationHandleRAII define(const char* schema) {
  return c10::Dispatcher::singleton().registerDef(torch::jit::parseSchema(schema), "a test");
}

std::vector<std::string> names_of(const std::string& qualified_name) {
  std::vector<std::string> names;
  for (const c10::OperatorHandle& op : overloads(qualified_name)) names.push_back(python_name(op));
  return names;
}

TEST(Operators, AreFoundByTheirNames) {
  const std::string names[] = {"torch.ops.aten.relu.default", "torch.ops.aten.add.Tensor",
                               "torch.ops.aten.max.dim"};
  for (const std::string& name : names) {
    const auto op = find_operator(name);
    ASSERT_TRUE(op) << name;
    EXPECT_EQ(python_name(*op), name);
  }
  EXPECT_FALSE(find_operator("torch.ops.aten.relu.Tensor"));
  EXPECT_FALSE(find_operator("torch.ops.aten.rellu.default"));
  EXPECT_FALSE(find_operator("torch.relu"));
}

TEST(Operators, AllThatTheDispatcherHasAreFound) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto known = dispatcher.findSchema(name);
    if (!known) continue;
    const auto found = find_operator(python_name(*known));
    ASSERT_TRUE(found) << python_name(*known);
    EXPECT_EQ(*found, *known);
  }
}

TEST(Operators, ThatComeAndGoAreKnownWhileTheyAreThere) {
  const graph::Target target("torch.ops.assay_late.halve.default");
  EXPECT_FALSE(find_operator(target));
  {
    const auto halve = define("assay_late::halve(Tensor x) -> Tensor");
    ASSERT_TRUE(find_operator(target));
    {
      const auto by = define("assay_late::halve.by(Tensor x, int times) -> Tensor");
      EXPECT_EQ(names_of("assay_late::halve"),
                (std::vector<std::string>{target.name(), "torch.ops.assay_late.halve.by"}));
    }
    EXPECT_EQ(names_of("assay_late::halve"), std::vector<std::string>{target.name()});
    const UserError error = unknown_operator("torch.ops.assay_late.halves.default");
    EXPECT_NE(error.detail().hint.find(target.name()), std::string::npos) << error.detail().hint;
  }
  EXPECT_FALSE(find_operator(target));
  EXPECT_TRUE(names_of("assay_late::halve").empty());
}

}  // namespace
}  // namespace assay::aten
