// Reading the environment.
#include "base/environment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>

namespace assay::base {
namespace {

constexpr std::array<std::string_view, 2> kNames = {"ASSAY_TEST_VARIABLE", "TORCH_TEST_VARIABLE"};

class Environment : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string_view name : kNames) unsetenv(std::string(name).c_str());
  }
};

TEST_F(Environment, TheFirstNameThatIsSetWins) {
  EXPECT_FALSE(read_variable(kNames));
  setenv("TORCH_TEST_VARIABLE", "stock", 1);
  EXPECT_EQ(read_variable(kNames)->name, "TORCH_TEST_VARIABLE");
  setenv("ASSAY_TEST_VARIABLE", "ours", 1);
  EXPECT_EQ(read_variable(kNames)->value, "ours");
}

TEST_F(Environment, SetToNothingCountsAsSet) {
  setenv("TORCH_TEST_VARIABLE", "stock", 1);
  setenv("ASSAY_TEST_VARIABLE", "", 1);
  ASSERT_TRUE(read_variable(kNames));
  EXPECT_EQ(read_variable(kNames)->name, "ASSAY_TEST_VARIABLE");
  EXPECT_EQ(read_variable(kNames)->value, "");
  EXPECT_EQ(environment_variable("ASSAY_TEST_VARIABLE"), "");
}

TEST_F(Environment, ListsEveryVariableWithItsWholeValue) {
  setenv("ASSAY_TEST_VARIABLE", "a=b", 1);
  const auto all = environment();
  EXPECT_TRUE(std::ranges::any_of(all, [](const Variable& variable) {
    return variable.name == "ASSAY_TEST_VARIABLE" && variable.value == "a=b";
  }));
}

}  // namespace
}  // namespace assay::base
