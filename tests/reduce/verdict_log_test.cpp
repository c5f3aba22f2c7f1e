// Verdicts outlive the reducer.
#include "reduce/verdict_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "assay/error.h"
#include "support/temporary_directory.h"

namespace assay::reduce {
namespace {

using sandbox::Signature;
using sandbox::Verdict;

Judgement judged(Verdict verdict, const std::string& message = "") {
  Judgement judgement;
  judgement.signature.verdict = verdict;
  judgement.signature.message = message;
  return judgement;
}

class VerdictLogTest : public ::testing::Test {
 protected:
  std::size_t lines() const {
    std::ifstream stream(file_);
    std::size_t count = 0;
    for (std::string line; std::getline(stream, line);) count += line.empty() ? 0 : 1;
    return count;
  }

  testing::TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_.path() / "verdicts.jsonl";
};

TEST_F(VerdictLogTest, ReadsWhatItWrote) {
  Judgement written;
  written.signature = {Verdict::accuracy, Stage::compare, "values", "relu", "a \"message\"\n", 0.5};
  written.suspects = {"relu_1", "add"};
  written.differences = {{"output[3]", "dtype"}, {"gradient['x']", "nan"}};
  {
    VerdictLog log(file_);
    EXPECT_EQ(log.find("key"), std::nullopt);
    log.add("key", written);
    log.add("other", judged(Verdict::passed));
  }
  const VerdictLog log(file_);
  EXPECT_EQ(log.size(), 2U);
  const auto read = log.find("key");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->differences.size(), 2U);
  EXPECT_EQ(read->differences[1].where, "gradient['x']");
  EXPECT_EQ(read->differences[1].kind, "nan");
  ASSERT_TRUE(read);
  EXPECT_TRUE(is_same(read->signature, written.signature));
  EXPECT_EQ(read->signature.magnitude, 0.5);
  EXPECT_EQ(read->suspects, written.suspects);
}

TEST_F(VerdictLogTest, WhatJsonCannotSayDoesNoHarm) {
  Judgement infinite = judged(Verdict::accuracy, "broken \xE2\x80");
  infinite.signature.magnitude = std::numeric_limits<double>::infinity();
  {
    VerdictLog log(file_);
    log.add("key", infinite);
    log.forget_passed();
  }
  EXPECT_EQ(VerdictLog(file_).find("key")->signature.verdict, Verdict::accuracy);
}

TEST_F(VerdictLogTest, ALastLineThatWasCutShortIsPassedOver) {
  {
    VerdictLog log(file_);
    log.add("one", judged(Verdict::passed));
    log.add("two", judged(Verdict::signal));
  }
  const auto whole = std::filesystem::file_size(file_);
  for (std::uintmax_t cut : {std::uintmax_t{1}, std::uintmax_t{20}, whole - 5}) {
    std::filesystem::resize_file(file_, whole - cut);
    {
      VerdictLog log(file_);
      EXPECT_EQ(log.find("one").has_value(), cut < whole / 2);
      log.add("one", judged(Verdict::passed));
      log.add("two", judged(Verdict::signal));
    }
    const VerdictLog log(file_);
    EXPECT_EQ(log.size(), 2U) << cut;
    EXPECT_EQ(log.find("two")->signature.verdict, Verdict::signal);
    std::filesystem::remove(file_);
    VerdictLog again(file_);
    again.add("one", judged(Verdict::passed));
    again.add("two", judged(Verdict::signal));
  }
}

TEST_F(VerdictLogTest, OpeningItAgainAddsNothing) {
  { VerdictLog(file_).add("one", judged(Verdict::passed)); }
  const auto size = std::filesystem::file_size(file_);
  for (int i = 0; i < 3; ++i) VerdictLog log(file_);
  EXPECT_EQ(std::filesystem::file_size(file_), size);
}

TEST_F(VerdictLogTest, LinesThatSayNothingArePassedOver) {
  std::ofstream(file_) << "{}\n{\"key\": 3}\n[1]\nnonsense\n{\"key\": \"a\", \"verdict\": 3}\n";
  VerdictLog log(file_);
  EXPECT_EQ(log.size(), 0U);
  log.add("one", judged(Verdict::passed));
  EXPECT_EQ(VerdictLog(file_).size(), 1U);
}

TEST_F(VerdictLogTest, WhatIsUnknownIsRefusedWithItsPlace) {
  const std::string rest =
      R"("type": "", "operator": "", "message": "", "magnitude": 0, "suspects": []})";
  const auto message_of = [&](const std::string& names) -> std::string {
    std::ofstream(file_) << "\n"
                         << R"({"key": "a", )" << names << ", " << rest << "\n";
    try {
      const VerdictLog log(file_);
      return log.find("a").has_value() ? "" : "passed over";
    } catch (const UserError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message_of(R"("verdict": "passed", "stage": "run")"), "");
  const std::string verdict = message_of(R"("verdict": "perhaps", "stage": "run")");
  EXPECT_TRUE(verdict.starts_with(file_.string() + ":2:1: unknown verdict 'perhaps'")) << verdict;
  const std::string stage = message_of(R"("verdict": "passed", "stage": "dreaming")");
  EXPECT_TRUE(stage.starts_with(file_.string() + ":2:1: unknown stage 'dreaming'")) << stage;
}

TEST_F(VerdictLogTest, Forgets) {
  VerdictLog log(file_);
  log.add("one", judged(Verdict::passed));
  log.add("two", judged(Verdict::signal));
  log.forget_passed();
  EXPECT_EQ(log.find("one"), std::nullopt);
  EXPECT_NE(log.find("two"), std::nullopt);
  log.add("three", judged(Verdict::invalid));
  EXPECT_EQ(VerdictLog(file_).size(), 2U);
  EXPECT_EQ(lines(), 2U);
  log.forget_all();
  EXPECT_EQ(log.size(), 0U);
  log.add("four", judged(Verdict::invalid));
  EXPECT_EQ(VerdictLog(file_).size(), 1U);
}

TEST(VerdictKey, IsTheTextsSha1) {
  EXPECT_EQ(verdict_key("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

}  // namespace
}  // namespace assay::reduce
