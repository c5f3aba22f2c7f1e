// Injected faults: each kind is seen with every backend.
#include "backends/fault.h"

#include <ATen/ops/randn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "assay/error.h"
#include "aten/runner.h"
#include "backends/error.h"
#include "backends_fixture.h"
#include "config/config.h"
#include "observe/subscribe.h"

namespace assay::backends {
namespace {

using at::Tensor;
using aten::Value;

bool is_built_in_fault(const Backend& backend) {
  return backend.tags == std::vector<std::string>{"testing"};
}

std::vector<std::string> working_backends() {
  std::vector<std::string> names;
  for (const auto& backend : all_backends()) {
    if (!is_built_in_fault(*backend)) names.push_back(backend->name);
  }
  return names;
}

std::string what_happens(const std::string& backend, const Fault& fault) {
  std::vector<Value> inputs;
  for (const Tensor& tensor : model_inputs()) inputs.emplace_back(c10::IValue(tensor));
  const Tensor expected =
      aten::unpack(compile_for_values("eager", model(), inputs)(inputs))[0].leaf.toTensor();
  const FaultScope scope(fault);
  compare::Callable compiled;
  try {
    compiled = compile_for_values(backend, model(), inputs);
  } catch (const BackendError& error) {
    return std::string("compile: ") + error.what();
  }
  try {
    const Tensor result = aten::unpack(compiled(inputs))[0].leaf.toTensor();
    if (result.isnan().any().item<bool>()) return "nan";
    return result.allclose(expected, 0.1, 0.1) ? "fine" : "wrong";
  } catch (const std::exception& error) {
    return std::string("run: ") + error.what();
  }
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

class FaultyBackend : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Backends, FaultyBackend, testing::ValuesIn(working_backends()),
                         [](const auto& test) { return test.param; });

TEST_P(FaultyBackend, ShowsEachKind) {
  expect_contains(what_happens(GetParam(), {"relu", FaultKind::compile_error}),
                  "compile: backend '" + GetParam() + "': injected compile error at 'relu'");
  expect_contains(what_happens(GetParam(), {"relu", FaultKind::runtime_error}), "run: ");
  expect_contains(what_happens(GetParam(), {"relu", FaultKind::runtime_error}),
                  "injected runtime error");
  EXPECT_EQ(what_happens(GetParam(), {"relu", FaultKind::accuracy}), "wrong");
  EXPECT_EQ(what_happens(GetParam(), {"relu", FaultKind::nan}), "nan");
  EXPECT_EQ(what_happens(GetParam(), {"gelu", FaultKind::nan}), "fine");
}

TEST_P(FaultyBackend, ShowsAFaultOfAnOperatorWithSeveralResults) {
  EXPECT_EQ(what_happens(GetParam(), {"chunk", FaultKind::nan}), "nan");
}

TEST_P(FaultyBackend, IsWrongInItsGradientsToo) {
  const FaultScope scope({"layer_norm", FaultKind::nan});
  const Called called = call(GetParam(), model(), model_inputs());
  EXPECT_TRUE(called.gradients[1].isnan().any().item<bool>());
}

TEST(Fault, MayBeInAnOperatorOfTheBackwardGraph) {
  const FaultScope scope({"threshold_backward", FaultKind::nan});
  const Called called = call("aot_eager", model(), model_inputs());
  EXPECT_FALSE(called.results[0].isnan().any().item<bool>());
  EXPECT_TRUE(called.gradients[0].isnan().any().item<bool>());
}

TEST(Fault, WithoutItsOperatorIsSaid) {
  std::vector<std::string> warnings;
  const observe::Subscription listening = observe::subscribe([&](const observe::Event& event) {
    if (event.level == observe::Level::warning) warnings.emplace_back(event.message);
  });
  const FaultScope scope({"conv3d", FaultKind::nan});
  call("aot_eager", model(), model_inputs());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0], "no fault was injected: nothing in the graph calls 'conv3d'");
}

TEST(Fault, IsReadFromText) {
  const Fault fault = parse_faults("layer_norm:oom").at(0);
  EXPECT_EQ(fault.op, "layer_norm");
  EXPECT_EQ(fault.kind, FaultKind::oom);
  const Fault with_threads = parse_faults("relu:abort:50%:threads").at(0);
  EXPECT_EQ(with_threads.percent, 50);
  EXPECT_TRUE(with_threads.needs_threads);
  EXPECT_FALSE(fault.needs_threads);
  for (const char* text : {"relu", "relu:", ":nan", "relu:acuracy", "relu:threads"}) {
    EXPECT_THROW(parse_faults(text), UserError) << text;
  }
  try {
    parse_faults("relu:acuracy");
  } catch (const UserError& error) {
    expect_contains(error.what(), "did you mean accuracy?");
  }
}

TEST(Fault, IsReadFromTheEnvironmentUnlessSet) {
  ASSERT_EQ(setenv("ASSAY_INJECT_FAULT", "mm:hang", 1), 0);
  config::reload_environment();
  EXPECT_EQ(current_faults().at(0).kind, FaultKind::hang);
  {
    const FaultScope scope({"mm", FaultKind::nan});
    EXPECT_EQ(current_faults().at(0).kind, FaultKind::nan);
  }
  ASSERT_EQ(unsetenv("ASSAY_INJECT_FAULT"), 0);
  config::reload_environment();
  EXPECT_TRUE(current_faults().empty());
}

TEST(Fault, IsWrittenAsItIsRead) {
  const std::string text = "relu:accuracy,mm:abort:50%,add:nan:threads,sub:nan:5%:threads";
  EXPECT_EQ(to_text(parse_faults(text)), text);
}

// Every way to write relu.
class Spelling : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Relu, Spelling,
                         testing::Values("torch.relu(x)", "torch.nn.functional.relu(x)",
                                         "torch.nn.functional.relu(x, inplace = True)", "x.relu()",
                                         "x.relu_()", "torch.relu_(x)",
                                         "torch.ops.aten.relu.default(x)",
                                         "torch.ops.aten.relu_.default(x)"));

TEST_P(Spelling, IsSeenByTheTestingBackends) {
  for (const bool reads_input : {false, true}) {
    const bool is_in_place = GetParam().find("relu_") != std::string::npos ||
                             GetParam().find("inplace") != std::string::npos;
    if (reads_input && !is_in_place) continue;
    const auto graph = graph_of("x", "        relu = " + GetParam() + "\n        return (" +
                                         (reads_input ? "x" : "relu") + " + 1,)\n");
    const Tensor input = at::randn({8});
    const auto inputs = [&] { return std::vector<Value>{c10::IValue(input.clone())}; };
    EXPECT_THROW(compile_for_values("relu_compile_error_TESTING_ONLY", graph, inputs()),
                 BackendError);
    const compare::Callable raising =
        compile_for_values("relu_runtime_error_TESTING_ONLY", graph, inputs());
    EXPECT_THROW(raising(inputs()), aten::OperatorError);
    const compare::Callable wrong =
        compile_for_values("relu_accuracy_error_TESTING_ONLY", graph, inputs());
    const Tensor found = aten::unpack(wrong(inputs()))[0].leaf.toTensor();
    const Tensor right =
        aten::unpack(compile_for_values("eager", graph, inputs())(inputs()))[0].leaf.toTensor();
    EXPECT_FALSE(found.allclose(right, 0.01, 0.01));
  }
}

TEST(CallsOperator, SeesModules) {
  const auto graph = graph_of("x",
                              "        act = self.act(x)\n        norm = self.norm(act)\n"
                              "        return (norm,)\n",
                              "    def __init__(self):\n        super().__init__()\n"
                              "        self.act = ReLU()\n"
                              "        self.norm = torch.nn.LayerNorm(8)\n");
  EXPECT_TRUE(calls_operator(*graph, *graph->find("act"), "relu"));
  EXPECT_FALSE(calls_operator(*graph, *graph->find("act"), "layer_norm"));
  EXPECT_TRUE(calls_operator(*graph, *graph->find("norm"), "layer_norm"));
}

// ---- deadly faults, each in a process of its own ----

// Says where it is, so that a death elsewhere does not count.
void run_with(FaultKind kind) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const rlimit memory{rlim_t{6} << 30U, rlim_t{6} << 30U};
  setrlimit(RLIMIT_AS, &memory);
  const FaultScope scope({"relu", kind});
  const auto graph = graph_of("x", "        return (torch.relu(x),)\n");
  const std::vector<Value> inputs = {c10::IValue(at::randn({4}))};
  const compare::Callable compiled = compile_for_values("aot_eager", graph, inputs);
  std::fprintf(stderr, "compiled\n");
  if (kind == FaultKind::hang) alarm(2);
  try {
    compiled(inputs);
  } catch (const aten::OperatorError& error) {
    std::fprintf(stderr, "raised %s\n", error.what());
    _exit(3);
  }
  _exit(0);
}

class DeadlyFaultDeathTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer has its own ideas about signals and address space";
#endif
    // A fresh process instead of a fork: libtorch has threads.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(DeadlyFaultDeathTest, Segfault) {
  EXPECT_EXIT(run_with(FaultKind::segfault), testing::KilledBySignal(SIGSEGV), "compiled");
}

TEST_F(DeadlyFaultDeathTest, Abort) {
  EXPECT_EXIT(run_with(FaultKind::abort), testing::KilledBySignal(SIGABRT), "compiled");
}

TEST_F(DeadlyFaultDeathTest, Hang) {
  EXPECT_EXIT(run_with(FaultKind::hang), testing::KilledBySignal(SIGALRM), "compiled");
}

TEST_F(DeadlyFaultDeathTest, OutOfMemory) {
  EXPECT_EXIT(run_with(FaultKind::oom), testing::ExitedWithCode(3), "compiled\nraised .*bad_alloc");
}

}  // namespace
}  // namespace assay::backends
