// eager_debug: operators held to their schemas.
#include <ATen/ops/randn.h>

#include "aten/runner.h"
#include "backends_fixture.h"

namespace assay::backends {
namespace {

using aten::Value;

std::string run(const std::string& body) {
  const auto graph = graph_of("x, y", body);
  const std::vector<Value> inputs = {c10::IValue(at::randn({2, 3})),
                                     c10::IValue(at::randn({2, 3}))};
  try {
    compile_for_values("eager_debug", graph, inputs)(inputs);
  } catch (const aten::OperatorError& error) {
    return error.what();
  }
  return "fine";
}

void expect_report(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
  }
}

TEST(EagerDebug, ReportsAnUndeclaredWrite) {
  expect_report(
      run("        lie = torch.ops.assay_lying.writes.default(x, y)\n"
          "        return (lie,)\n"),
      {"node 'lie' failed", "assay_lying::writes", "undeclared mutation of the argument 'x'",
       "writes(Tensor x, Tensor y) -> Tensor"});
}

TEST(EagerDebug, ReportsAnUndeclaredAlias) {
  expect_report(run("        lie = torch.ops.assay_lying.aliases.default(x, y)\n"
                    "        return (lie,)\n"),
                {"node 'lie' failed", "result 0 is an undeclared alias of the argument 'y'"});
}

TEST(EagerDebug, AcceptsDeclaredWritesAndViews) {
  EXPECT_EQ(run("        twice = torch.ops.assay_lying.honest.default(x)\n"
                "        view = twice.view(-1)\n"
                "        parts = torch.split(view, 2)\n"
                "        first = parts[0]\n"
                "        first.add_(1)\n"
                "        y.copy_(y.flip(0))\n"
                "        same = torch.nn.functional.dropout(y, 0.5, False)\n"
                "        mm = torch.matmul(x, y.t())\n"
                "        return (mm, same.reshape(3, 2))\n"),
            "fine");
}

TEST(EagerDebug, AcceptsTheViewsThatPyTorchCallsUnsafe) {
  EXPECT_EQ(run("        parts = torch.unsafe_split(x, 1)\n"
                "        return (parts[0], torch.ops.aten._unsafe_view.default(y, [6]))\n"),
            "fine");
}

TEST(EagerDebug, AcceptsTheStatisticsOfBatchNorm) {
  const auto graph = graph_of("x, mean, var",
                              "        return (torch.nn.functional.batch_norm(x, mean, var, None, "
                              "None, True, 0.1, 1e-05),)\n");
  const std::vector<Value> inputs = {c10::IValue(at::randn({4, 3})), c10::IValue(at::randn({3})),
                                     c10::IValue(at::randn({3}).abs())};
  EXPECT_NO_THROW(compile_for_values("eager_debug", graph, inputs)(inputs));
}

}  // namespace
}  // namespace assay::backends
