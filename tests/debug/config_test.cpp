// The settings of the debug wrapper.
#include "repro/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "assay/error.h"

namespace assay::repro {
namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

std::string error_of(const char* name, const char* value) {
  const Variable after("ASSAY_REPRO_AFTER", "dynamo");
  const Variable variable(name, value);
  try {
    debug_config_from_environment();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(DebugConfig, IsOffByDefault) {
  EXPECT_EQ(debug_config_from_environment().repro_after, ReproAfter::none);
  EXPECT_EQ(current_debug_config().repro_after, ReproAfter::none);
}

TEST(DebugConfig, ReadsStocksVariables) {
  const Variable after("TORCHDYNAMO_REPRO_AFTER", "aot");
  const Variable level("TORCHDYNAMO_REPRO_LEVEL", "4");
  const Variable forward("TORCHDYNAMO_REPRO_FORWARD_ONLY", "1");
  const Variable floats("TORCHDYNAMO_REPRO_IGNORE_NON_FP", "1");
  const Variable directory("TORCH_COMPILE_DEBUG_DIR", "/somewhere");
  const DebugConfig config = debug_config_from_environment();
  EXPECT_EQ(config.repro_after, ReproAfter::aot);
  EXPECT_EQ(config.repro_level, 4);
  EXPECT_TRUE(config.repro_forward_only);
  EXPECT_TRUE(config.repro_ignore_non_fp);
  EXPECT_EQ(config.debug_directory, "/somewhere/torch_compile_debug");
  const std::string made = minifier_directory(config).string();
  EXPECT_TRUE(made.starts_with("/somewhere/torch_compile_debug/run_2")) << made;
  EXPECT_TRUE(made.ends_with("-pid_" + std::to_string(getpid()) + "/minifier")) << made;
  EXPECT_EQ(minifier_directory(config), made) << "one for the whole process";
}

TEST(DebugConfig, OurPrefixWinsEvenWhenSetToNothing) {
  const Variable stock("TORCHDYNAMO_REPRO_AFTER", "aot");
  const Variable level("TORCHDYNAMO_REPRO_LEVEL", "4");
  {
    const Variable ours("ASSAY_REPRO_LEVEL", "1");
    EXPECT_EQ(debug_config_from_environment().repro_level, 1);
  }
  const Variable off("ASSAY_REPRO_AFTER", "");
  EXPECT_EQ(debug_config_from_environment().repro_after, ReproAfter::none);
}

TEST(DebugConfig, ReducesAtOnceAfterDynamoOnly) {
  DebugConfig config;
  config.repro_after = ReproAfter::dynamo;
  EXPECT_TRUE(config.reduces_now());
  config.repro_after = ReproAfter::aot;
  EXPECT_FALSE(config.reduces_now());
  config.reduce = ReduceWhen::now;
  EXPECT_TRUE(config.reduces_now());
  config.repro_level = 1;
  EXPECT_FALSE(config.reduces_now()) << "there is no launcher to reduce";
}

TEST(DebugConfig, WrongValuesAreErrorsThatNameTheVariable) {
  for (const auto& [name, value, expected] :
       std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {"ASSAY_REPRO_AFTER", "dynamos", "expected dynamo, aot or nothing"},
           {"TORCHDYNAMO_REPRO_LEVEL", "5", "expected 1 (write the graph)"},
           {"TORCHDYNAMO_REPRO_LEVEL", "two", "expected 1 (write the graph)"},
           {"TORCHDYNAMO_REPRO_FORWARD_ONLY", "yes", "expected 0 or 1"},
           {"ASSAY_REPRO_IGNORE_NON_FP", "2", "expected 0 or 1"},
           {"ASSAY_REPRO_TOLERANCE", "-1", "expected a number"},
           {"ASSAY_REPRO_INPUTS", "none", "expected data or shapes"},
           {"ASSAY_REDUCE", "later", "expected now or launcher"}}) {
    const std::string message = error_of(name, value);
    EXPECT_NE(message.find(std::string(name) + " is '" + value + "'"), std::string::npos)
        << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
}

TEST(DebugConfig, AScopeWinsOverTheEnvironmentAndASuspensionOverBoth) {
  const Variable after("ASSAY_REPRO_AFTER", "aot");
  const DebugConfigScope scope({.repro_after = ReproAfter::dynamo});
  EXPECT_EQ(current_debug_config().repro_after, ReproAfter::dynamo);
  {
    const DebugSuspended off;
    EXPECT_EQ(current_debug_config().repro_after, ReproAfter::none);
    std::thread([] { EXPECT_EQ(current_debug_config().repro_after, ReproAfter::dynamo); }).join();
  }
  EXPECT_EQ(current_debug_config().repro_after, ReproAfter::dynamo);
}

}  // namespace
}  // namespace assay::repro
