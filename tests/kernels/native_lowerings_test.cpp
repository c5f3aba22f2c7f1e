// Every lowering against ATen through the whole pipeline: all samples of one dtype and layout are
// one graph, which is fused, emitted, compiled and run.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "aten/runner.h"
#include "graph/parse.h"
#include "kernels/compile.h"
#include "lowering_samples.h"

namespace assay::kernels {
namespace {

using Inputs = std::vector<std::pair<std::string, at::Tensor>>;

std::shared_ptr<graph::Graph> graph_of(const Inputs& inputs, const std::string& calls,
                                       const std::string& results) {
  std::string text = "class Repro(torch.nn.Module):\n    def forward(self";
  for (const auto& [name, tensor] : inputs) text += ", " + name;
  return graph::parse(text + "):\n" + calls + "        return (" + results + ",)\n");
}

std::vector<aten::Value> values_of(const Inputs& inputs) {
  std::vector<aten::Value> values;
  for (const auto& [name, tensor] : inputs) values.emplace_back(tensor);
  return values;
}

class NativeLowerings : public testing::TestWithParam<std::tuple<at::ScalarType, SampleLayout>> {};

TEST_P(NativeLowerings, MatchATen) {
  const auto [dtype, layout] = GetParam();
  at::manual_seed(7);
  const Inputs inputs = sample_inputs(dtype, layout);
  const std::vector<aten::Value> values = values_of(inputs);
  std::string calls;
  std::string results;
  std::vector<std::string> origins;
  int number = 0;
  for (const auto samples : {pointwise_samples(), reduction_samples(), movement_samples()}) {
    for (const LoweringSample& sample : samples) {
      if (std::ranges::count(dtypes_of(sample.dtypes), dtype) == 0) continue;
      const std::string name = "r" + std::to_string(number++);
      std::string lines = "        " + name + " = torch.ops." + std::string(sample.call) + "\n";
      std::string names = name;
      for (int i = 0; i < sample.results && sample.results > 1; ++i) {
        const std::string item = name + "_" + std::to_string(i);
        lines += "        " + item + " = " + name + "[" + std::to_string(i) + "]\n";
        names = i == 0 ? item : names + ", " + item;
      }
      try {
        aten::GraphRunner(*graph_of(inputs, lines, names)).run(values);
      } catch (const aten::OperatorError&) {
        continue;  // eager does not support the dtype
      }
      calls += lines;
      results += (results.empty() ? "" : ", ") + names;
      origins.insert(origins.end(), static_cast<std::size_t>(sample.results),
                     std::string(sample.call));
    }
  }
  const auto graph = graph_of(inputs, calls, results);
  aten::propagate_metadata(*graph, values);
  const std::vector<aten::Value> expected = aten::unpack(aten::GraphRunner(*graph).run(values));
  CompileRequest request;
  request.graph = graph;
  for (const auto& [name, tensor] : inputs) request.inputs.emplace_back(tensor);
  const auto compiled = compile(request, {});
  std::vector<c10::IValue> arguments = request.inputs;
  c10::SmallVector<c10::IValue, 8> outputs;
  compiled->call(arguments, outputs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    SCOPED_TRACE(origins[i]);
    const at::Tensor eager = expected[i].leaf.toTensor();
    const at::Tensor ours = outputs[i].toTensor();
    ASSERT_EQ(ours.scalar_type(), eager.scalar_type());
    ASSERT_EQ(ours.sizes(), eager.sizes());
    EXPECT_EQ(ours.strides(), eager.strides());
    const double allowed = tolerance(eager.scalar_type());
    EXPECT_TRUE(at::allclose(ours.to(at::kDouble), eager.to(at::kDouble), allowed, allowed, true))
        << ours << "\ninstead of\n"
        << eager;
  }
}

std::string name_of(const testing::TestParamInfo<NativeLowerings::ParamType>& info) {
  return std::string(c10::toString(std::get<0>(info.param))) + "_" +
         std::to_string(static_cast<int>(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(All, NativeLowerings,
                         testing::Combine(testing::ValuesIn(dtypes_of(SampleDtypes::all)),
                                          testing::ValuesIn(kSampleLayouts)),
                         name_of);

}  // namespace
}  // namespace assay::kernels
