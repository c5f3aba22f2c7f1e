// Every subset of the calls is a program: what is cut off becomes an input.
#include "reduce/candidate.h"

#include "graph/parse.h"
#include "reduce/inputs.h"
#include "reduce_fixture.h"

namespace assay::reduce {
namespace {

const char* const kX = "x: \"f32[4][1]cpu\"";
const char* const kXY = "x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"";

class ProgramTest : public ReduceTest {};

TEST_F(ProgramTest, ARemovedCallBecomesAnInputWithItsValue) {
  const Candidate program =
      load_with_values(class_text(kX, {"sin = torch.sin(x)", "relu = torch.relu(sin)",
                                       "neg = torch.neg(relu)", "return (neg,)"}));
  const auto kept = keep(program, {"neg"});
  ASSERT_TRUE(kept);
  EXPECT_EQ(lines_of(*kept), (Lines{"relu", "neg = torch.neg(relu)", "return (neg,)"}));
  ASSERT_EQ(kept->inputs.size(), 1U);
  const at::Tensor x = input_contents(program, 0, workspace_->store());
  EXPECT_TRUE(input_contents(*kept, 0, workspace_->store()).equal(x.sin().relu()));
}

TEST_F(ProgramTest, InputsThatAreStillReadComeFirst) {
  const Candidate program = load_with_values(
      class_text(kXY, {"sin = torch.sin(x)", "add = y + sin", "mul = add * y", "return (mul,)"}));
  EXPECT_EQ(lines_of(*keep(program, {"mul"})), (Lines{"y, add", "mul = add * y", "return (mul,)"}));
  EXPECT_EQ(lines_of(*keep(program, {"add"})), (Lines{"y, sin", "add = y + sin", "return (add,)"}));
  EXPECT_EQ(lines_of(*keep(program, {"sin"})), (Lines{"x", "sin = torch.sin(x)", "return (sin,)"}));
  EXPECT_EQ(lines_of(*keep(program, {"sin", "mul"})),
            (Lines{"x, y, add", "sin = torch.sin(x)", "mul = add * y", "return (mul, sin)"}));
}

TEST_F(ProgramTest, ResultsThatAreKeptStayAndWhatNobodyReadsJoinsThem) {
  const Candidate program =
      load_with_values(class_text(kX, {"a = torch.sin(x)", "b = torch.cos(a)", "c = torch.relu(a)",
                                       "d = b + c", "return (b, d, x)"}));
  EXPECT_EQ(lines_of(*keep(program, {"a", "b", "c"})).back(), "return (b, c)");
  EXPECT_EQ(lines_of(*keep(program, {"d"})).back(), "return (d,)");
  EXPECT_EQ(keep(program, {}), std::nullopt) << "nothing would be left";
}

TEST_F(ProgramTest, StoragesAreRenumbered) {
  const Candidate program =
      load_with_values(class_text(kXY, {"a = x + 1", "b = y + 2", "c = a + b", "return (c,)"}));
  ASSERT_EQ(program.storages.size(), 2U);
  const auto kept = keep(program, {"b"});
  ASSERT_EQ(kept->storages.size(), 1U);
  EXPECT_EQ(kept->storages[0].hash, program.storages[1].hash);
  EXPECT_EQ(tensor_of(*kept, 0).storage, 0U);
}

TEST_F(ProgramTest, ItemsStayWithTheCallTheyAreTakenFrom) {
  const Candidate program = load_with_values(
      class_text("x: \"f32[4, 4][4, 1]cpu\"",
                 {"best = torch.max(x, 1)", "values = best[0]", "indices = best[1]",
                  "neg = torch.neg(values)", "return (neg, indices)"}));
  EXPECT_EQ(count_calls(*program.graph), 2U);
  const auto all = atoms(*program.graph);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].size(), 3U);
  EXPECT_EQ(lines_of(*keep(program, {"neg"})),
            (Lines{"values", "neg = torch.neg(values)", "return (neg,)"}));
  EXPECT_EQ(lines_of(*keep(program, {"best", "values", "indices"})),
            (Lines{"x", "best = torch.max(x, 1)", "values = best[0]", "indices = best[1]",
                   "return (indices, values)"}));
}

TEST_F(ProgramTest, ConstantsAreWrittenIntoTheCalls) {
  const Candidate program = load_with_values(
      class_text("x: \"f32[4, 3][3, 1]cpu\"",
                 {"size = x.size(1)", "view = x.view(size, -1)", "return (view,)"}));
  EXPECT_EQ(lines_of(*keep(program, {"view"})),
            (Lines{"x", "view = x.view(3, -1)", "return (view,)"}));
}

TEST_F(ProgramTest, WhatIsNotKnownIsRefused) {
  Candidate program = load(class_text(kX, {"a = torch.sin(x)", "b = torch.cos(a)", "return (b,)"}));
  EXPECT_EQ(keep(program, {"b"}), std::nullopt) << "nothing was recorded";
  EXPECT_NE(keep(program, {"a"}), std::nullopt) << "nothing is needed";
  program.values = std::make_shared<const Recording>();
  EXPECT_EQ(keep(program, {"b"}), std::nullopt);
  Candidate several = load_with_values(
      class_text(kX, {"a = torch.chunk(x, 2)", "b = torch.cat(a)", "return (b,)"}));
  EXPECT_EQ(keep(several, {"b"}), std::nullopt) << "several tensors are no input";
}

TEST_F(ProgramTest, AttributesThatNobodyReadsGo) {
  const Candidate program = load_with_values(
      class_text(kX, {"w = self.w", "v = self.v", "mul = x * v", "add = mul + w", "return (add,)"},
                 {"self.w = torch.nn.Parameter(torch.randn([4], dtype=torch.float32))",
                  "self.v = torch.nn.Parameter(torch.randn([4], dtype=torch.float32))"}));
  EXPECT_EQ(program.graph->attributes().size(), 2U);
  const auto kept = keep(program, {"add"});
  ASSERT_EQ(kept->graph->attributes().size(), 1U);
  EXPECT_EQ(kept->graph->attributes()[0].name, "w");
  EXPECT_EQ(keep(program, {"mul"})->graph->attributes()[0].name, "v");
}

TEST_F(ProgramTest, AttributesWithDottedNamesStay) {
  const Candidate program =
      load(class_text(kX, {"w = self.layer.w", "add = x + w", "mul = add * 2", "return (mul,)"},
                      {"self.register_buffer('layer.w', torch.randn([4], dtype=torch.float32))",
                       "self.register_buffer('layer.v', torch.randn([4], dtype=torch.float32))"}));
  const auto kept = keep(program, {"add"});
  ASSERT_EQ(kept->graph->attributes().size(), 1U);
  EXPECT_EQ(kept->graph->attributes()[0].name, "layer.w");
}

TEST_F(ProgramTest, ARecordingIsRead) {
  const Recording recording = parse_recording(R"({
      "a": {"storage": "abc", "bytes": 24, "dtype": "int64", "size": [3], "stride": [1],
            "offset": 0, "requires_grad": false},
      "b": {"constant": 2.5}, "c": {"constant": true}, "d": {"constant": null},
      "e": {"items": []}, "f": {"unknown": "Generator"}})");
  using Kind = RecordedValue::Kind;
  EXPECT_EQ(recording.at("a").kind, Kind::tensor);
  EXPECT_EQ(recording.at("a").tensor.meta.dtype, c10::ScalarType::Long);
  EXPECT_EQ(graph::print(recording.at("b").constant), "2.5");
  EXPECT_EQ(graph::print(recording.at("c").constant), "True");
  EXPECT_EQ(graph::print(recording.at("d").constant), "None");
  EXPECT_EQ(recording.at("d").kind, Kind::constant);
  EXPECT_EQ(recording.at("e").kind, Kind::several);
  EXPECT_EQ(recording.at("f").kind, Kind::unknown);
}

}  // namespace
}  // namespace assay::reduce
