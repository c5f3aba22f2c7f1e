// The settings of the debug wrapper.
#include "repro/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "assay/error.h"
#include "config/config.h"

namespace assay::repro {
namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);
    config::reload_environment();
  }
  ~Variable() {
    unsetenv(name_);
    config::reload_environment();
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(DebugConfig, IsOffByDefault) {
  EXPECT_EQ(current_debug_config().repro_after, ReproAfter::none);
}

TEST(DebugConfig, ReadsStocksVariables) {
  const Variable after("TORCHDYNAMO_REPRO_AFTER", "aot");
  const Variable level("TORCHDYNAMO_REPRO_LEVEL", "4");
  const Variable forward("TORCHDYNAMO_REPRO_FORWARD_ONLY", "1");
  const Variable floats("TORCHDYNAMO_REPRO_IGNORE_NON_FP", "1");
  const Variable directory("TORCH_COMPILE_DEBUG_DIR", "/somewhere");
  const DebugConfig config = current_debug_config();
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
    EXPECT_EQ(current_debug_config().repro_level, 1);
  }
  const Variable off("ASSAY_REPRO_AFTER", "");
  EXPECT_EQ(current_debug_config().repro_after, ReproAfter::none);
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

TEST(DebugConfig, AWrongValueIsAnErrorOnlyIfItIsUsed) {
  const Variable level("TORCHDYNAMO_REPRO_LEVEL", "5");
  EXPECT_EQ(current_debug_config().repro_after, ReproAfter::none);
  const Variable after("ASSAY_REPRO_AFTER", "dynamo");
  EXPECT_THROW(current_debug_config(), UserError);
}

TEST(DebugConfig, AScopeSetsEverySetting) {
  DebugConfig config;
  config.repro_after = ReproAfter::aot;
  config.repro_level = 4;
  config.repro_forward_only = true;
  config.repro_ignore_non_fp = true;
  config.tolerance = 0.25;
  config.reduce = ReduceWhen::launcher;
  config.debug_directory = "/somewhere/else";
  config.store_inputs = false;
  const DebugConfigScope scope(config);
  const DebugConfig read = current_debug_config();
  EXPECT_EQ(read.repro_after, ReproAfter::aot);
  EXPECT_EQ(read.repro_level, 4);
  EXPECT_TRUE(read.repro_forward_only);
  EXPECT_TRUE(read.repro_ignore_non_fp);
  EXPECT_EQ(read.tolerance, 0.25);
  EXPECT_EQ(read.reduce, ReduceWhen::launcher);
  EXPECT_EQ(read.debug_directory, "/somewhere/else");
  EXPECT_FALSE(read.store_inputs);
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
