// Dropout of torch.nn.functional. The operators named here draw random numbers in eager's order;
// their decompositions do not.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

Value drop(const char* op, const BoundArguments& arguments, const Operand& input) {
  const double p = arguments.number("p");
  if (p < 0.0 || p > 1.0) {
    throw UserError("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
  }
  return run(arguments.truth("inplace") ? std::string(op) + "_" : op,
             {input, p, arguments["training"]});
}

template <const char* op>
Value run_dropout(const BoundArguments& arguments) {
  return drop(op, arguments, arguments["input"]);
}

// Drops whole channels; without a batch dimension one is put in front meanwhile.
Value drop_channels(const BoundArguments& arguments, std::int64_t batched_dims) {
  at::Tensor input = arguments.tensor("input");
  if (input.dim() == batched_dims) return drop("aten::feature_dropout", arguments, input);
  const bool in_place = arguments.truth("inplace");
  input = in_place ? input.unsqueeze_(0) : input.unsqueeze(0);
  const at::Tensor result = tensor_of(drop("aten::feature_dropout", arguments, input));
  return Operand(in_place ? result.squeeze_(0) : result.squeeze(0)).value;
}

Value dropout1d(const BoundArguments& arguments) {
  const std::int64_t dims = arguments.tensor("input").dim();
  if (dims != 2 && dims != 3) {
    throw UserError("dropout1d: Expected 2D or 3D input, but received a " + std::to_string(dims) +
                    "D input");
  }
  return drop_channels(arguments, 3);
}

Value dropout3d(const BoundArguments& arguments) { return drop_channels(arguments, 5); }

constexpr char kDropout[] = "aten::dropout";
constexpr char kAlpha[] = "aten::alpha_dropout";
constexpr char kFeature[] = "aten::feature_dropout";
constexpr char kFeatureAlpha[] = "aten::feature_alpha_dropout";

constexpr std::string_view kTraining = "input, p=0.5, training=True, inplace=False";
constexpr std::string_view kNotTraining = "input, p=0.5, training=False, inplace=False";

constexpr std::array kDropoutFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.dropout", kTraining, run_dropout<kDropout>},
    {"torch.nn.functional.alpha_dropout", kNotTraining, run_dropout<kAlpha>},
    {"torch.nn.functional.feature_alpha_dropout", kNotTraining, run_dropout<kFeatureAlpha>},
    {"torch.nn.functional.dropout1d", kTraining, dropout1d},
    {"torch.nn.functional.dropout2d", kTraining, run_dropout<kFeature>},
    {"torch.nn.functional.dropout3d", kTraining, dropout3d},
});

}  // namespace

FunctionTable dropout_functions() { return kDropoutFunctions; }

}  // namespace assay::aten
