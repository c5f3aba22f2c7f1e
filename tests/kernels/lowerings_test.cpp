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

enum class SampleLayout { contiguous, transposed, gapped };

at::Tensor laid_out(const at::Tensor& tensor, SampleLayout layout) {
  if (layout == SampleLayout::transposed && tensor.dim() > 1) {
    return tensor.transpose(0, -1).contiguous().transpose(0, -1);
  }
  if (layout == SampleLayout::gapped && tensor.dim() > 0) {
    auto sizes = tensor.sizes().vec();
    sizes.back() = 2 * sizes.back() + 1;
    at::Tensor wide = at::zeros(sizes, tensor.options());
    at::Tensor gapped = wide.slice(-1, 1, sizes.back(), 2);
    return gapped.copy_(tensor);
  }
  return tensor;
}

at::Tensor drawn(at::IntArrayRef sizes, at::ScalarType dtype) {
  if (at::isFloatingType(dtype)) return at::randn(sizes, at::kDouble).mul(3).to(dtype);
  if (dtype == at::kBool) return at::rand(sizes).lt(0.5);
  return at::randint(dtype == at::kByte ? 0 : -9, 10, sizes, at::kLong).to(dtype);
}

std::vector<std::pair<std::string, at::Tensor>> sample_inputs(at::ScalarType dtype,
                                                              SampleLayout layout) {
  const double infinity = std::numeric_limits<double>::infinity();
  at::Tensor edge = at::tensor(
      {0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, 1e4, infinity, -infinity, std::nan("")},
      at::kDouble);
  if (!at::isFloatingType(dtype)) {
    edge = at::tensor({0, 1, 2, 3, 5, 9, 10, 31, 64, 100, 127, 1}, at::kLong);
  }
  at::Tensor unit = at::rand({4, 6}, at::kDouble).mul(0.98).add(0.01);
  if (!at::isFloatingType(dtype)) unit = at::randint(1, 4, {4, 6}, at::kLong);
  std::vector<std::pair<std::string, at::Tensor>> inputs{
      {"x", drawn({4, 6}, dtype)},
      {"y", drawn({4, 6}, dtype)},
      {"row", drawn({6}, dtype)},
      {"col", drawn({4, 1}, dtype)},
      {"one", drawn({}, dtype)},
      {"cube", drawn({2, 3, 4}, dtype)},
      {"image", drawn({2, 3, 6, 4}, dtype)},
      {"holes", at::isFloatingType(dtype)
                    ? at::rand({1, 2, 5, 5}).mul(4).floor().div(0).mul(-1).to(dtype)
                    : drawn({1, 2, 5, 5}, dtype)},
      {"volume", drawn({1, 2, 3, 4, 2}, dtype)},
      {"empty", drawn({0, 6}, dtype)},
      {"unit", unit.to(dtype)},
      {"edge", edge.to(dtype)},
      {"mask", drawn({4, 6}, at::kBool)},
      {"labels", at::randint(0, 4, {4, 6}, at::kLong)},
      {"wrapped", at::randint(-4, 4, {4}, at::kLong)},
      {"near", at::randint(0, 4, {4}, at::kLong)},
      {"few", at::randint(0, 7, {2, 3}, at::kLong)},
      {"single", drawn({4, 6}, at::kFloat)},
  };
  for (auto& [name, tensor] : inputs) tensor = laid_out(tensor, layout);
  return inputs;
}

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

double tolerance(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return 1e-12;
    case at::kFloat:
      return 2e-6;
    // Where eager rounds in between, we may be closer to the truth.
    case at::kHalf:
      return 4e-3;
    case at::kBFloat16:
      return 2e-2;
    default:
      return 0;
  }
}

std::vector<at::ScalarType> dtypes_of(SampleDtypes dtypes) {
  switch (dtypes) {
    case SampleDtypes::all:
      return {at::kFloat, at::kDouble, at::kHalf,  at::kBFloat16, at::kBool,
              at::kByte,  at::kChar,   at::kShort, at::kInt,      at::kLong};
    case SampleDtypes::floats:
      return {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
    case SampleDtypes::integers:
      return {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong};
    case SampleDtypes::none:
      return {at::kFloat};
  }
  return {};
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
      for (const SampleLayout layout :
           {SampleLayout::contiguous, SampleLayout::transposed, SampleLayout::gapped}) {
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
