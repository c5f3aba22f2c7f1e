// The registry of backends: open at run time, and what is checked of a request.
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>

#include <algorithm>

#include "assay/backend.h"
#include "assay/compile.h"
#include "assay/error.h"
#include "backends_fixture.h"

namespace assay {

namespace {

// Eager that counts its calls; registered once for all tests of this file.
int& calls_of_counting_backend() {
  static int count = 0;
  static const bool is_registered = [] {
    register_backend(
        {.name = "counting",
         .description = "eager that counts",
         .options = {{"twice", false, "count each call twice"}},
         .compile = [](const CompileRequest& request) {
           const auto twice = request.options.find("twice");
           const int step = twice != request.options.end() && std::get<bool>(twice->second) ? 2 : 1;
           return make_compiled_graph(
               [eager = compile_graph("eager", {.graph = request.graph, .inputs = request.inputs}),
                step](std::span<c10::IValue> inputs, Outputs& outputs) {
                 count += step;
                 eager->call(inputs, outputs);
               });
         }});
    return true;
  }();
  EXPECT_TRUE(is_registered);
  count = 0;
  return count;
}

std::string message_of_compiling(const std::string& backend, BackendOptions options) {
  const auto graph = backends::graph_of("x", "        return (torch.relu(x),)\n");
  try {
    compile_graph(backend, {.graph = graph, .inputs = {at::ones({2})}, .options = options});
  } catch (const UserError& error) {
    return error.what();
  }
  return "compiled";
}

}  // namespace

TEST(Registry, ABackendRegisteredAtRunTimeIsListedAndCompiles) {
  const int& calls = calls_of_counting_backend();
  const auto all = all_backends();
  EXPECT_TRUE(std::ranges::any_of(all, [](const auto& b) { return b->name == "counting"; }));
  const at::Tensor weight = at::randn({3});
  const auto compiled =
      assay::compile([&](const at::Tensor& x) { return x * weight + 1; }, {.backend = "counting"});
  const at::Tensor x = at::randn({3});
  EXPECT_TRUE(compiled(x).equal(x * weight + 1));  // `weight` is bound for it
  EXPECT_TRUE(compiled(x).equal(x * weight + 1));
  EXPECT_EQ(calls, 2);
}

TEST(Registry, OptionsReachTheBackend) {
  const int& calls = calls_of_counting_backend();
  const auto compiled = assay::compile([](const at::Tensor& x) { return x + 1; },
                                       {.backend = "counting", .options = {{"twice", true}}});
  compiled(at::ones({1}));
  EXPECT_EQ(calls, 2);
}

TEST(Registry, OptionsAreChecked) {
  calls_of_counting_backend();
  EXPECT_NE(message_of_compiling("counting", {{"twicee", true}}).find("did you mean twice"),
            std::string::npos);
  EXPECT_NE(message_of_compiling("counting", {{"twice", std::int64_t{1}}}).find("must be a bool"),
            std::string::npos);
  EXPECT_NE(message_of_compiling("eager", {{"twice", true}}).find("has no option 'twice'"),
            std::string::npos);
}

TEST(Registry, NamesAreTakenOnce) {
  calls_of_counting_backend();
  const Compiler compiler = find_backend("eager")->compile;
  EXPECT_THROW(register_backend({.name = "counting", .compile = compiler}), UserError);
  EXPECT_THROW(register_backend({.name = "aot_eager", .compile = compiler}), UserError);
  EXPECT_THROW(register_backend({.name = "", .compile = compiler}), UserError);
  EXPECT_THROW(register_backend({.name = "nothing", .compile = {}}), UserError);
}

}  // namespace assay
