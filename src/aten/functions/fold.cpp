// Patches and padding of torch.nn.functional: unfold, fold, pad.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

Value unfold(const BoundArguments& arguments) {
  return run("aten::im2col",
             {arguments["input"], repeat_to(arguments["kernel_size"], 2),
              repeat_to(arguments["dilation"], 2), repeat_to(arguments["padding"], 2),
              repeat_to(arguments["stride"], 2)});
}

Value fold(const BoundArguments& arguments) {
  return run("aten::col2im",
             {arguments["input"], repeat_to(arguments["output_size"], 2),
              repeat_to(arguments["kernel_size"], 2), repeat_to(arguments["dilation"], 2),
              repeat_to(arguments["padding"], 2), repeat_to(arguments["stride"], 2)});
}

Value pad(const BoundArguments& arguments) {
  return run("aten::pad",
             {arguments["input"], arguments["pad"], arguments["mode"], arguments["value"]});
}

constexpr std::array kFoldFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.unfold", "input, kernel_size, dilation=1, padding=0, stride=1", unfold},
    {"torch.nn.functional.fold", "input, output_size, kernel_size, dilation=1, padding=0, stride=1",
     fold},
    {"torch.nn.functional.pad", "input, pad, mode='constant', value=None", pad},
});

}  // namespace

FunctionTable fold_functions() { return kFoldFunctions; }

}  // namespace assay::aten
