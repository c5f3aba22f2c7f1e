// Every lowering against ATen: sizes, strides, dtypes and values, without emitted code.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "aten/runner.h"
#include "graph/parse.h"
#include "kernels/interpret.h"
#include "kernels/lower.h"
#include "kernels/print.h"
#include "kernels/verify.h"
#include "lowering_samples.h"

namespace assay::kernels {
namespace {

std::shared_ptr<graph::Graph> sample_graph(const LoweringSample& sample) {
  std::string text = "class Repro(torch.nn.Module):\n    def forward(self";
  for (const auto& [name, tensor] : sample_inputs(at::kFloat, SampleLayout::contiguous)) {
    text += ", " + name;
  }
  text += "):\n        r = torch.ops." + std::string(sample.call) + "\n";
  std::string results = "r";
  if (sample.results > 1) {
    results.clear();
    for (int i = 0; i < sample.results; ++i) {
      const std::string number = std::to_string(i);
      text += "        r" + number + " = r[" + number + "]\n";
      results += (i == 0 ? "r" : ", r") + number;
    }
  }
  return graph::parse(text + "        return (" + results + ",)\n");
}

// The results of a program without extern calls, with the memory they lie in.
struct Interpreted {
  std::vector<at::Tensor> memory;
  std::vector<at::Tensor> results;
  std::string failure;
};

Interpreted run_by_interpreter(const LoopProgram& program, const std::vector<at::Tensor>& inputs) {
  Interpreted run;
  std::vector<void*> pointers;
  for (const Buffer& buffer : program.buffers) {
    run.memory.push_back(at::full({std::max<std::int64_t>(buffer.elements, 1)}, 77,
                                  at::TensorOptions(buffer.dtype)));
    pointers.push_back(run.memory.back().data_ptr());
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    run.memory[program.inputs[i]] = inputs[i];
    pointers[program.inputs[i]] = inputs[i].data_ptr();
  }
  for (const Step& step : program.steps) {
    const char* failed = interpret(std::get<Kernel>(step), program, pointers);
    if (failed != nullptr) {
      run.failure = failed;
      return run;
    }
  }
  for (const ProgramOutput& output : program.outputs) {
    const auto& ref = std::get<TensorRef>(output);
    const at::Tensor& memory = run.memory[ref.buffer];
    run.results.push_back(memory.as_strided(at::IntArrayRef(ref.sizes.data(), ref.sizes.size()),
                                            at::IntArrayRef(ref.strides.data(), ref.strides.size()),
                                            memory.storage_offset() + ref.offset));
  }
  return run;
}

void check_sample(const LoweringSample& sample, at::ScalarType dtype, SampleLayout layout) {
  SCOPED_TRACE(std::string(sample.call) + " of " + c10::toString(dtype) + ", layout " +
               std::to_string(static_cast<int>(layout)));
  const auto graph = sample_graph(sample);
  std::vector<at::Tensor> inputs;
  std::vector<aten::Value> values;
  for (const auto& [name, tensor] : sample_inputs(dtype, layout)) {
    inputs.push_back(tensor);
    values.emplace_back(tensor);
  }
  aten::Value expected;
  try {
    aten::propagate_metadata(*graph, values);
    expected = aten::GraphRunner(*graph).run(values);
  } catch (const aten::OperatorError&) {
    return;  // eager does not support the dtype, or raises for these values
  }
  const LoopProgram program = lower(graph);
  ASSERT_NO_THROW(verify(program)) << print(program);
  for (const Step& step : program.steps) {
    if (const auto* call = std::get_if<ExternCall>(&step)) {
      // Some dtypes are left to ATen on purpose; in float everything is lowered.
      ASSERT_NE(dtype, at::kFloat) << call->reason;
      return;
    }
  }
  const Interpreted run = run_by_interpreter(program, inputs);
  ASSERT_EQ(run.failure, "");
  const std::vector<aten::Value> wanted = aten::unpack(expected);
  ASSERT_EQ(run.results.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const at::Tensor eager = wanted[i].leaf.toTensor();
    const at::Tensor& ours = run.results[i];
    ASSERT_EQ(ours.scalar_type(), eager.scalar_type());
    ASSERT_EQ(ours.sizes(), eager.sizes());
    ASSERT_EQ(ours.strides(), eager.strides());
    const double allowed = tolerance(eager.scalar_type());
    ASSERT_TRUE(at::allclose(ours.to(at::kDouble), eager.to(at::kDouble), allowed, allowed, true))
        << ours << "\ninstead of\n"
        << eager << '\n'
        << print(program);
    if (allowed != 0) {
      const at::Tensor zero = eager.eq(0).logical_and(ours.eq(0));
      ASSERT_TRUE(at::equal(ours.signbit().logical_and(zero), eager.signbit().logical_and(zero)))
          << "signs of zeros: " << ours << "\ninstead of\n"
          << eager;
    }
  }
}

void check_samples(std::span<const LoweringSample> samples) {
  for (const LoweringSample& sample : samples) {
    for (const at::ScalarType dtype : dtypes_of(sample.dtypes)) {
      for (const SampleLayout layout : kSampleLayouts) {
        at::manual_seed(7);
        check_sample(sample, dtype, layout);
      }
    }
  }
}

TEST(Lowerings, PointwiseMatchesATen) { check_samples(pointwise_samples()); }
TEST(Lowerings, ReductionsMatchATen) { check_samples(reduction_samples()); }
TEST(Lowerings, MovementsMatchATen) { check_samples(movement_samples()); }

TEST(Lowerings, EveryRowHasASample) {
  std::set<std::string> sampled;
  for (const auto samples : {pointwise_samples(), reduction_samples(), movement_samples()}) {
    for (const LoweringSample& sample : samples) {
      std::string name(sample.call.substr(0, sample.call.find('(')));
      name.replace(name.find('.'), 1, "::");
      if (name.ends_with(".default")) name.resize(name.size() - 8);
      sampled.insert(name);
    }
  }
  for (const Lowering& row : lowerings()) {
    EXPECT_TRUE(sampled.contains(std::string(row.op))) << row.op << " has no sample";
  }
}

}  // namespace
}  // namespace assay::kernels
