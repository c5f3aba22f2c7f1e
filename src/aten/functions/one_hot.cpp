// torch.nn.functional.one_hot. The operator looks at values to say that one is no class; where the
// number of classes is given, these are checks that a graph can hold, and the result's size is
// known.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

void check_all(const at::Tensor& holds, const char* message) {
  run("aten::_assert_async", {run_tensor("aten::all", {holds}), message});
}

Value one_hot(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const std::int64_t classes = arguments.integer("num_classes");
  if (classes <= 0 || input.scalar_type() != at::kLong || input.numel() == 0) {
    return run("aten::one_hot", {input, classes});
  }
  check_all(run_tensor("aten::ge", {input, 0}), "Class values must be non-negative.");
  check_all(run_tensor("aten::lt", {input, classes}),
            "Class values must be smaller than num_classes.");
  const at::Tensor numbers =
      run_tensor("aten::arange", {classes}, {{"dtype", at::kLong}, {"device", input.device()}});
  return run("aten::to", {run_tensor("aten::eq", {input.unsqueeze(-1), numbers}), at::kLong});
}

constexpr std::array kOneHotFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.one_hot", "input, num_classes=-1", one_hot},
});

}  // namespace

FunctionTable one_hot_functions() { return kOneHotFunctions; }

}  // namespace assay::aten
