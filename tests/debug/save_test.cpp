// save_graph_repro and bundle: what is written can be read back, moved and sent.
#include "repro/save.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "assay/error.h"
#include "aten/runner.h"
#include "graph/parse.h"
#include "repro/bundle.h"
#include "repro/inputs.h"
#include "repro/write.h"
#include "support/temporary_directory.h"

namespace assay::repro {
namespace {

using aten::Value;
using testing::TemporaryDirectory;

constexpr const char* kGraph = R"(
class program(torch.nn.Module):
    def forward(self, x, y, scale, flag, power):
        mul = torch.ops.aten.mul.Tensor(x, scale)
        add = torch.ops.aten.add.Tensor(mul, y)
        pow_1 = torch.ops.aten.pow.Tensor_Scalar(add, power)
        return (pow_1,)
)";

// x and y share memory; y is no leaf.
std::vector<Value> make_inputs() {
  const at::Tensor base = at::arange(8, at::kFloat);
  const at::Tensor x = base.slice(0, 0, 4);
  return {c10::IValue(x), c10::IValue(base.slice(0, 2, 6)), c10::IValue(0.5), c10::IValue(true),
          c10::IValue(2)};
}

at::Tensor run(const ReproFile& file) {
  const Inputs inputs = load_inputs(file);
  EXPECT_EQ(inputs.made_up_storages, 0U);
  const Value result = aten::GraphRunner(*file.graph).run(inputs.values);
  return aten::unpack(result)[0].leaf.toTensor();
}

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

class Save : public ::testing::Test {
 protected:
  void save(const std::filesystem::path& file, SaveOptions options) {
    save_graph_repro(file, *graph_, make_inputs(), options);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<graph::Graph> graph_ = graph::parse(kGraph);
  at::Tensor expected_ = at::tensor({4., 12.25, 25., 42.25}, at::kFloat);
};

TEST_F(Save, BothStagesReadBackWithTheSameInputs) {
  for (const Stage stage : {Stage::after_aot, Stage::after_dynamo}) {
    const auto file = directory_.path() / "repro.py";
    save(file, {.stage = stage,
                .backend = "aot_eager",
                .save_dir = directory_.path() / "checkpoints",
                .command = "minify",
                .accuracy = "True"});
    const ReproFile read_back = read_repro_file(file);
    EXPECT_EQ(read_back.stage, stage);
    EXPECT_EQ(read_back.backend, "aot_eager");
    EXPECT_EQ(read_back.command, "minify");
    EXPECT_EQ(read_back.accuracy, "True");
    EXPECT_EQ(read_back.save_directory, "checkpoints");
    EXPECT_EQ(read_back.storages.size(), 1U) << "shared memory stays shared";
    EXPECT_TRUE(at::equal(run(read_back), expected_)) << run(read_back);
    EXPECT_EQ(print_repro_file(read_back), read(file));
  }
}

TEST_F(Save, OptionsOfStockAreWritten) {
  const auto file = directory_.path() / "repro.py";
  save(file, {.tracing_mode = "symbolic", .check_str = "it's wrong"});
  const ReproFile read_back = read_repro_file(file);
  EXPECT_EQ(read_back.tracing_mode, "symbolic");
  EXPECT_EQ(read_back.check_string, "it's wrong");
  EXPECT_FALSE(read_back.save_directory);
}

TEST_F(Save, AFileMovesWithItsStorages) {
  const auto before = directory_.path() / "before";
  std::filesystem::create_directory(before);
  save(before / "repro.py", {.save_dir = before / "data"});
  std::filesystem::rename(before, directory_.path() / "after");
  EXPECT_TRUE(at::equal(run(read_repro_file(directory_.path() / "after" / "repro.py")), expected_));
}

TEST_F(Save, StoragesElsewhereAreNamedByTheirWholePath) {
  std::filesystem::create_directory(directory_.path() / "here");
  save(directory_.path() / "here" / "repro.py", {.save_dir = directory_.path() / "there"});
  const ReproFile file = read_repro_file(directory_.path() / "here" / "repro.py");
  EXPECT_EQ(file.save_directory, (directory_.path() / "there").string());
  EXPECT_TRUE(at::equal(run(file), expected_));
}

TEST_F(Save, StoragesInTheFilesOwnDirectory) {
  save(directory_.path() / "7.py", {.save_dir = directory_.path()});
  const ReproFile file = read_repro_file(directory_.path() / "7.py");
  EXPECT_EQ(file.save_directory, ".");
  EXPECT_TRUE(at::equal(run(file), expected_));
}

TEST_F(Save, TheHeaderSaysWhatItWasMadeWith) {
  setenv("ASSAY_REPRO_AFTER", "aot", 1);
  at::globalContext().setDeterministicAlgorithms(true, false);
  const auto file = directory_.path() / "repro.py";
  save(file, {.role = "backward", .failure = "it broke\nin two lines"});
  at::globalContext().setDeterministicAlgorithms(false, false);
  unsetenv("ASSAY_REPRO_AFTER");
  const std::string text = read(file);
  for (const char* line : {"# assay version: ", "# torch version: 2.13", "# hardware: ", " cores\n",
                           "# seed: ", "# setting: deterministic algorithms\n",
                           "# environment: ASSAY_REPRO_AFTER = 'aot'\n", "# graph: backward\n",
                           "# failure: it broke\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST_F(Save, WithoutDataTheRangesAreInTheHeader) {
  const auto file = directory_.path() / "repro.py";
  save(file, {});
  const std::string text = read(file);
  EXPECT_NE(text.find("# input x: f32[4][1]cpu, 0 to 3, mean 1.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# input y: f32[4][1]cpu, 2 to 5, mean 3.5\n"), std::string::npos) << text;
  EXPECT_EQ(load_inputs(read_repro_file(file)).made_up_storages, 1U);
}

TEST_F(Save, StableOutputDependsOnTheGraphOnly) {
  save(directory_.path() / "a.py", {.stable_output = true, .failure = "once"});
  setenv("ASSAY_REPRO_LEVEL", "3", 1);
  at::manual_seed(17);
  save(directory_.path() / "b.py", {.stable_output = true, .failure = "twice"});
  unsetenv("ASSAY_REPRO_LEVEL");
  const std::string text = read(directory_.path() / "a.py");
  EXPECT_EQ(text, read(directory_.path() / "b.py"));
  EXPECT_EQ(text.find("# assay version"), std::string::npos) << text;
}

TEST_F(Save, ADirectoryThatIsComputedInOtherWaysIsAnError) {
  for (const char* directory : {"os.path.join('a', 'b')", "open('x')", "f'{x}'",
                                "os.path.join(os.path.dirname(os.path.abspath(__file__)), name)"}) {
    const std::string text = std::string(kGraph) +
                             "\ndef load_args(reader):\n    pass\n"
                             "run_repro(mod, load_args, save_dir=" +
                             directory + ")\n";
    EXPECT_THROW(parse_repro_file(text, "x.py"), UserError) << directory;
  }
}

TEST_F(Save, ABundleNeedsNothingElse) {
  const auto file = directory_.path() / "repro.py";
  save(file, {.save_dir = directory_.path() / "checkpoints"});
  const std::string text = bundle(file);
  std::filesystem::remove_all(directory_.path() / "checkpoints");
  const ReproFile bundled = parse_repro_file(text, "elsewhere.py");
  EXPECT_TRUE(at::equal(run(bundled), expected_));
  EXPECT_EQ(print_repro_file(bundled), text);
  EXPECT_THROW(bundle(file), UserError) << "the data is gone";
}

TEST_F(Save, ABundleThatWasDamagedIsAnError) {
  const auto file = directory_.path() / "repro.py";
  save(file, {.save_dir = directory_.path() / "checkpoints"});
  std::string text = bundle(file);
  const std::size_t contents = text.find("': '", text.find("storages = {")) + 4;
  text[contents] = '!';
  EXPECT_THROW(parse_repro_file(text, "x.py"), UserError);
  text.erase(contents, 4);
  EXPECT_THROW(load_inputs(parse_repro_file(text, "x.py")), UserError) << "a size that is wrong";
}

TEST(Base64, IsTheUsualOne) {
  for (const auto& [bytes, text] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"\xff\xfe\xfd", "//79"}}) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  for (const char* wrong : {"Z", "Zg=", "Z!==", "Zg==Zg=="}) EXPECT_FALSE(from_base64(wrong));
}

}  // namespace
}  // namespace assay::repro
