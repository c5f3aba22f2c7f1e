// The choice of a backend by name.
#include "assay/backend.h"
#include "assay/compile.h"
#include "assay/error.h"
#include "support.h"

namespace assay {

TEST(Backends, AnUnknownNameIsAnErrorAtOnceWithTheNearestNames) {
  const std::string message = message_of<UserError>(
      [] { assay::compile([](const at::Tensor& x) { return x; }, {.backend = "aot_eagre"}); });
  EXPECT_NE(message.find("aot_eagre"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean aot_eager"), std::string::npos) << message;
}

TEST(Backends, AllForEverydayUseGiveTheSameResultsAndGradients) {
  const auto program = [](const at::Tensor& x, const at::Tensor& w) {
    return (x.matmul(w).tanh() * 2).sum();
  };
  for (const auto& backend : all_backends()) {
    if (std::ranges::find(backend->tags, "testing") != backend->tags.end()) continue;
    const auto compiled = assay::compile(program, {.backend = backend->name});
    const at::Tensor x = leaf({2, 3});
    const at::Tensor y = leaf({2, 3});
    const at::Tensor w = numbers({3, 2}) * 0.1;
    const at::Tensor found = compiled(x, w);
    const at::Tensor expected = program(y, w);
    EXPECT_TRUE(found.allclose(expected)) << backend->name;
    found.backward();
    expected.backward();
    EXPECT_TRUE(x.grad().allclose(y.grad())) << backend->name;
  }
}

}  // namespace assay
