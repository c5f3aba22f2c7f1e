// The calling convention: bound inputs, inputs that are released, integers, halves compiled late.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <atomic>
#include <thread>

#include "aten/runner.h"
#include "autograd/aot.h"
#include "backends/error.h"
#include "backends/fault.h"
#include "backends_fixture.h"

namespace assay::backends {

namespace {

using at::Tensor;
using Values = c10::SmallVector<c10::IValue, 8>;

Tensor only_result(const CompiledGraph& compiled, std::vector<c10::IValue> inputs) {
  Values outputs;
  compiled.call(inputs, outputs);
  EXPECT_EQ(outputs.size(), 1u);
  return outputs[0].toTensor();
}

std::shared_ptr<const graph::Graph> weighted() {
  return graph_of("x, weight, scale",
                  "        mul = x * weight\n"
                  "        first = weight[0]\n"
                  "        return (mul * scale + first,)\n");
}

// A compiler of halves that counts what it is given.
struct Counting {
  std::atomic<int> forward = 0;
  std::atomic<int> backward = 0;
  std::atomic<std::size_t> backward_inputs = 0;

  Compiler compiler() {
    return [this](const CompileRequest& request) {
      ++(request.role == Role::backward ? backward : forward);
      if (request.role == Role::backward) backward_inputs = request.inputs.size();
      return aten::run_with_aten(request);
    };
  }
};

CompileRequest sine_request() {
  Tensor x = at::randn({3});
  x.set_requires_grad(true);
  return {.graph = graph_of("x", "        return (torch.sin(x),)\n"), .inputs = {x}};
}

}  // namespace

TEST(Calling, BoundInputsAreNotPassed) {
  const Tensor x = at::randn({3});
  const Tensor weight = at::randn({3});
  const Tensor scale = at::randn({3});
  const Tensor expected = (x * weight) * scale + weight[0];
  for (const auto& backend : all_backends()) {
    if (backend->tags == std::vector<std::string>{"testing"}) continue;
    const auto compiled = compile_graph(
        backend->name, {.graph = weighted(), .inputs = {x, weight, scale}, .bound_inputs = 2});
    EXPECT_TRUE(only_result(*compiled, {x}).allclose(expected)) << backend->name;
    EXPECT_TRUE(only_result(*compiled, {x * 2}).allclose((x * 2 * weight) * scale + weight[0]))
        << backend->name;
  }
}

TEST(Calling, BoundInputsAreReadWhenCalled) {
  const Tensor weight = at::ones({2});
  const auto compiled =
      compile_graph("eager", {.graph = graph_of("x, w", "        return (x + w,)\n"),
                              .inputs = {at::ones({2}), weight},
                              .bound_inputs = 1});
  weight.fill_(5);  // as an optimizer does
  EXPECT_TRUE(only_result(*compiled, {at::ones({2})}).equal(at::ones({2}) * 6));
}

TEST(Calling, AnInputDiesAtItsLastUse) {
  const auto graph = graph_of("x",
                              "        a = torch.sin(x)\n"
                              "        b = torch.cos(a)\n"
                              "        return (b,)\n");
  const aten::GraphRunner runner(*graph);
  std::vector<c10::IValue> inputs = {at::randn({4})};
  const c10::weak_intrusive_ptr<c10::TensorImpl> x(inputs[0].toTensor().getIntrusivePtr());
  bool was_alive_after_use = false;
  Values outputs;
  runner.call(inputs, outputs, [&](const graph::Node& node, const aten::Value&) {
    if (node.name() == "b") was_alive_after_use = !x.expired();
  });
  EXPECT_FALSE(was_alive_after_use);
}

TEST(Calling, TheFrameThatIsReusedHoldsNothing) {
  const auto graph = graph_of("x, unread", "        return (torch.relu(x), 3, None, [x])\n");
  const aten::GraphRunner runner(*graph);
  for (int i = 0; i < 3; ++i) {
    std::vector<c10::IValue> inputs = {at::randn({4}), at::randn({4})};
    const c10::weak_intrusive_ptr<c10::TensorImpl> x(inputs[0].toTensor().getIntrusivePtr());
    const c10::weak_intrusive_ptr<c10::TensorImpl> unread(inputs[1].toTensor().getIntrusivePtr());
    {
      Values outputs;
      runner.call(inputs, outputs);
      ASSERT_EQ(outputs.size(), 4u);
      EXPECT_EQ(outputs[1].toInt(), 3);
      EXPECT_TRUE(outputs[2].isNone());
      inputs.clear();
    }
    EXPECT_TRUE(x.expired());
    EXPECT_TRUE(unread.expired());
  }
}

TEST(Calling, ARunnerCanBeCalledFromSeveralThreadsAndInsideItself) {
  const auto graph = graph_of("x", "        return (torch.sin(x) * 2,)\n");
  const aten::GraphRunner runner(*graph);
  const auto run = [&](const Tensor& x) {
    std::vector<c10::IValue> inputs = {x};
    Values outputs;
    runner.call(inputs, outputs);
    return outputs[0].toTensor();
  };
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const Tensor x = at::ones({2}) * i;
      for (int round = 0; round < 200; ++round) {
        if (!run(x).equal(x.sin() * 2)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  std::vector<c10::IValue> inputs = {at::ones({2})};
  Values outputs;
  runner.call(inputs, outputs, [&](const graph::Node& node, const aten::Value&) {
    if (node.is_call()) run(at::ones({2}) * 7);
  });
  EXPECT_TRUE(outputs[0].toTensor().equal(at::ones({2}).sin() * 2));
}

TEST(Calling, AFailedRunLeavesNothingBehind) {
  const auto graph = graph_of("x, y", "        return (torch.mm(torch.relu(x), y),)\n");
  const aten::GraphRunner runner(*graph);
  for (int i = 0; i < 2; ++i) {
    std::vector<c10::IValue> wrong = {at::randn({2, 3}), at::randn({2, 3})};
    Values outputs;
    EXPECT_THROW(runner.call(wrong, outputs), aten::OperatorError);
    const Tensor x = at::randn({2, 3});
    const Tensor y = at::randn({3, 2});
    std::vector<c10::IValue> right = {x, y};
    outputs.clear();
    runner.call(right, outputs);
    EXPECT_TRUE(outputs[0].toTensor().equal(x.relu().mm(y)));
  }
}

TEST(Calling, HalvesAreCompiledTogetherUnlessAskedOtherwise) {
  Counting counting;
  const autograd::AotGraph compiled(sine_request(), {.compiler = counting.compiler()});
  EXPECT_EQ(counting.forward, 1);
  EXPECT_EQ(counting.backward, 1);
  EXPECT_EQ(counting.backward_inputs, 0u);
}

TEST(Calling, ABackwardGraphCanBeCompiledWhenItIsFirstNeeded) {
  Counting counting;
  auto compiled = std::make_unique<const autograd::AotGraph>(
      sine_request(), autograd::AotOptions{.compiler = counting.compiler(), .lazy_backward = true});
  EXPECT_EQ(counting.backward, 0);
  Tensor x = at::randn({3});
  x.set_requires_grad(true);
  const Tensor first = only_result(*compiled, {x});
  const Tensor second = only_result(*compiled, {x});
  compiled.reset();  // the calls' autograd nodes outlive it
  EXPECT_EQ(counting.backward, 0);
  first.sum().backward();
  second.sum().backward();
  EXPECT_EQ(counting.backward, 1);
  EXPECT_GE(counting.backward_inputs, 2u);  // what was saved, and the tangent
  EXPECT_TRUE(x.grad().allclose(x.detach().cos() * 2));
}

TEST(Calling, FaultsReachABackwardGraphThatIsCompiledLate) {
  std::shared_ptr<const CompiledGraph> compiled;
  {
    const FaultScope fault({"cos", FaultKind::compile_error});  // only backward has a cos
    CompileRequest request = sine_request();
    request.options = {{"lazy_backward", true}};
    compiled = compile_graph("aot_eager", request);
  }
  Tensor x = at::randn({3});
  x.set_requires_grad(true);
  const Tensor result = only_result(*compiled, {x});
  EXPECT_THROW(result.sum().backward(), BackendError);
}

// `linear` is an addmm in the halves: the fault is in that, and nothing is compiled twice to find
// out.
TEST(Calling, AFaultIsInWhatItsOperatorBecameInTheHalves) {
  const FaultScope fault({"linear", FaultKind::runtime_error});
  int captured = 0;
  int halves = 0;
  Surroundings surroundings;
  surroundings.faults_in_halves = true;
  surroundings.debug_wrapper = [&](Compiler compiler) -> Compiler {
    return [&, compiler = std::move(compiler)](const CompileRequest& request) {
      ++(request.role == Role::captured ? captured : halves);
      for (const graph::Node& node : request.graph->nodes()) {
        EXPECT_NE(node.target().base_name(), "fault");  // whoever watches sees the graph without it
      }
      return compiler(request);
    };
  };
  const auto graph = graph_of("x, w", "        return (torch.nn.functional.linear(x, w),)\n");
  const Tensor x = at::randn({2, 3});
  const Tensor w = at::randn({4, 3});
  const auto compiled =
      compile(*find_backend("aot_eager"), {.graph = graph, .inputs = {x, w}}, surroundings);
  EXPECT_EQ(captured, 1);
  EXPECT_EQ(halves, 1);
  std::vector<c10::IValue> inputs = {x, w};
  Values outputs;
  EXPECT_THROW(compiled->call(inputs, outputs), aten::OperatorError);
}

// Numbers are cast ahead of time where that changes nothing.
TEST(Calling, ArithmeticWithNumbersIsEagersToTheBit) {
  const std::vector<std::string> numbers = {"1", "2.7", "16777217", "-3", "1e300", "True"};
  const std::vector<at::ScalarType> dtypes = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf,
                                              at::kLong,  at::kByte,   at::kBool};
  for (const std::string name : {"add", "sub", "mul"}) {
    for (const std::string& number : numbers) {
      const auto graph = graph_of(
          "x", "        return (torch.ops.aten." + name + ".Tensor(x, " + number + "),)\n");
      const aten::GraphRunner runner(*graph);
      for (const at::ScalarType dtype : dtypes) {
        for (const bool is_zero_dimensional : {false, true}) {
          const Tensor x =
              at::full(is_zero_dimensional ? at::IntArrayRef{} : at::IntArrayRef{3}, 1.3).to(dtype);
          const auto eager = [&]() -> std::optional<Tensor> {
            const c10::Scalar scalar = number == "True" ? c10::Scalar(true)
                                       : number.find_first_of(".e") != std::string::npos
                                           ? c10::Scalar(std::stod(number))
                                           : c10::Scalar(std::int64_t{std::stoll(number)});
            try {
              if (name == "add") return x.add(scalar);
              return name == "sub" ? x.sub(scalar) : x.mul(scalar);
            } catch (const c10::Error&) {
              return std::nullopt;
            }
          }();
          const std::string what = name + " " + number + " " + c10::toString(dtype);
          std::vector<c10::IValue> inputs = {x};
          Values outputs;
          if (!eager) {
            EXPECT_THROW(runner.call(inputs, outputs), aten::OperatorError) << what;
            continue;
          }
          runner.call(inputs, outputs);
          EXPECT_EQ(outputs[0].toTensor().scalar_type(), eager->scalar_type()) << what;
          EXPECT_TRUE(outputs[0].toTensor().equal(*eager)) << what;
        }
      }
    }
  }
}

TEST(Calling, IntegersAreSavedForBackward) {
  auto joint = graph_of("primals_1, tangents_1",
                        "        size = torch.ops.aten.sym_size.int(primals_1, 0)\n"
                        "        twice = torch.ops.aten.mul.Tensor(primals_1, 2)\n"
                        "        gradient = torch.ops.aten.mul.Tensor(tangents_1, size)\n"
                        "        return (twice, gradient)\n");
  std::shared_ptr<graph::Graph> described = joint->clone();
  aten::propagate_metadata(*described, {c10::IValue(at::ones({3})), c10::IValue(at::ones({3}))});
  autograd::JointGraph program;
  program.graph = described->clone();
  program.forward_outputs = 1;
  program.primals.resize(1);
  program.primals[0].requires_grad = true;
  program.outputs.resize(1);
  program.outputs[0].requires_grad = true;
  program.tangents = {0};
  autograd::HalvesOptions options;
  options.partitioner = &autograd::partition_default;
  options.compiler = &aten::run_with_aten;
  const autograd::CompiledHalves halves(std::move(program), {at::ones({3})}, options);
  Tensor x = at::ones({3});
  x.set_requires_grad(true);
  std::vector<c10::IValue> inputs = {x};
  Values outputs;
  halves.call(inputs, outputs);
  EXPECT_TRUE(outputs[0].toTensor().equal(at::ones({3}) * 2));
  outputs[0].toTensor().sum().backward();
  EXPECT_TRUE(x.grad().equal(at::ones({3}) * 3));
}

}  // namespace assay::backends
