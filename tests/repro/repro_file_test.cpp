#include "repro/repro_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "assay/error.h"
#include "repro/write.h"
#include "support/temporary_directory.h"

namespace assay::repro {
namespace {

const std::filesystem::path kFixtures =
    std::filesystem::path(ASSAY_SOURCE_DIR) / "tests/fixtures/stock";

const std::string kGraph =
    "class Repro(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n";

std::string refusal(const std::string& text) {
  try {
    parse_repro_file(text, "f.py");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ReproFile, AfterAotWithSymbols) {
  const auto file = read_repro_file(kFixtures / "dynamic_mlp/forward_symbolic_launcher.py");
  EXPECT_EQ(file.stage, Stage::after_aot);
  EXPECT_EQ(file.tracing_mode, "symbolic");
  EXPECT_EQ(file.command, "minify");
  EXPECT_FALSE(file.symbols.empty());
  EXPECT_FALSE(file.config.empty());
  EXPECT_NE(file.header.find("torch version"), std::string::npos);
}

TEST(ReproFile, AfterDynamoWithStorages) {
  const auto file = read_repro_file(kFixtures / "linear_layernorm_relu/dynamo_launcher.py");
  EXPECT_EQ(file.stage, Stage::after_dynamo);
  EXPECT_TRUE(file.save_directory);
  EXPECT_EQ(file.storages.at(0).hash.size(), 40U);
  EXPECT_TRUE(std::get<TensorInput>(file.inputs.at(0)).is_leaf);
}

TEST(ReproFile, AStorageThatNobodyUsesLeavesNoGap) {
  const auto file = parse_repro_file(kGraph +
                                         "def load_args(reader):\n"
                                         "    buf0 = reader.storage(None, 4)\n"
                                         "    buf1 = reader.storage(None, 8)\n"
                                         "    reader.tensor(buf1, (2,))\n",
                                     "f.py");
  const std::string printed = print_repro_file(file);
  EXPECT_EQ(print_repro_file(parse_repro_file(printed, "f.py")), printed);
}

TEST(ReproFile, OlderForms) {
  const auto aot = read_repro_file(kFixtures / "old_form/after_aot.py");
  EXPECT_EQ(aot.stage, Stage::after_aot);
  const auto dynamo = read_repro_file(kFixtures / "old_form/after_dynamo.py");
  EXPECT_EQ(dynamo.stage, Stage::after_dynamo);
  EXPECT_FALSE(dynamo.inputs.empty());
}

TEST(ReproFile, AReadableGraphSaysItsInputsInAnnotations) {
  const auto file = parse_repro_file(
      "class <lambda>(torch.nn.Module):\n"
      "    def forward(self, arg0_1: \"f32[4, 4]\", arg1_1: \"Sym(3)\"):\n"
      "        sin: \"f32[4, 4]\" = torch.ops.aten.sin.default(arg0_1)\n"
      "        return (sin,)\n",
      "fx_graph_readable.py");
  EXPECT_EQ(std::get<TensorInput>(file.inputs.at(0)).meta.sizes.size(), 2U);
  EXPECT_EQ(std::get<IntegerInput>(file.inputs.at(1)).value, 3);
}

TEST(ReproFile, CodeAroundTheGraphIsNotRun) {
  const auto file = parse_repro_file(std::string("import os\n"
                                                 "os.system('touch /tmp/assay_was_here')\n"
                                                 "exec(open('x').read())\n"
                                                 "for i in range(10**9):\n    pass\n"
                                                 "@decorated\n"
                                                 "def helper(a, *args, b=1, **kwargs):\n"
                                                 "    return [x for x in a if x]\n") +
                                         kGraph +
                                         "def load_args(reader):\n"
                                         "    reader.symint(4)\n",
                                     "f.py");
  EXPECT_EQ(file.graph->size(), 2U);
  EXPECT_FALSE(std::filesystem::exists("/tmp/assay_was_here"));
}

TEST(ReproFile, WhatIsWrongWithTheInputsIsSaid) {
  const std::string head = kGraph + "def load_args(reader):\n";
  const auto undescribed = parse_repro_file(kGraph, "f.py").undescribed_input;
  ASSERT_TRUE(undescribed.has_value());
  EXPECT_NE(undescribed->detail().message.find("the file does not describe the input 'x'"),
            std::string::npos);
  EXPECT_NE(refusal(head + "    pass\n").find("takes 1 inputs, the file gives 0"),
            std::string::npos);
  EXPECT_NE(refusal(head + "    os.system('x')\n").find("unknown reader method 'os.system'"),
            std::string::npos);
  EXPECT_NE(refusal(head + "    while True:\n        pass\n").find("can only call the reader"),
            std::string::npos);
  EXPECT_NE(refusal(head + "    reader.tensor(b, (1,))\n").find("this storage is not defined"),
            std::string::npos);
  EXPECT_NE(refusal(head + "    b = reader.storage('../../etc/passwd', 4)\n")
                .find("not a storage's hash"),
            std::string::npos);
  EXPECT_NE(refusal(head + "    b = reader.storage(None, 4)\n"
                           "    reader.tensor(b, (1,), (1, 1))\n")
                .find("as many strides as sizes"),
            std::string::npos);
  EXPECT_NE(refusal(kGraph + "args = [(1, 2)]\n").find("expected (sizes, strides"),
            std::string::npos);
}

TEST(ReproFile, FilesThatCannotBeRead) {
  const testing::TemporaryDirectory directory;
  EXPECT_THROW(read_repro_file(directory.path() / "missing.py"), UserError);
  EXPECT_THROW(read_repro_file(directory.path()), UserError);
  EXPECT_THROW(read_repro_file("/dev/zero"), UserError) << "endless and binary";
}

}  // namespace
}  // namespace assay::repro
