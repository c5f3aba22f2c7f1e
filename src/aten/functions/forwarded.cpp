// Names under torch.nn.functional (and a few others) that are operators under another name.
#include "aten/functions/forwarded.h"

#include <array>

#include "aten/call.h"
#include "aten/functions/tables.h"

namespace assay::aten {

Value forward_to(const std::string& op, const BoundArguments& arguments, Dialect dialect) {
  Arguments given;
  given.positional = arguments["args"].items;
  const Value& keywords = arguments["kwargs"];
  for (std::size_t i = 0; i < keywords.keys.size(); ++i) {
    given.keywords.push_back({keywords.keys[i], keywords.items[i]});
  }
  return call(op, given, dialect);
}

namespace {

template <const char* op>
Value forward(const BoundArguments& arguments) {
  return forward_to(op, arguments);
}

// `torch.nn.functional.conv2d` is the operator `conv2d`.
Value forward_same_name(const BoundArguments& arguments) {
  const std::string_view function = arguments.function();
  return forward_to("aten::" + std::string(function.substr(function.rfind('.') + 1)), arguments);
}

constexpr char kLogSigmoid[] = "aten::log_sigmoid";

constexpr std::array kForwardedFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.adaptive_avg_pool1d", kEverything, forward_same_name},
    {"torch.nn.functional.avg_pool1d", kEverything, forward_same_name},
    {"torch.nn.functional.avg_pool2d", kEverything, forward_same_name},
    {"torch.nn.functional.avg_pool3d", kEverything, forward_same_name},
    {"torch.nn.functional.bilinear", kEverything, forward_same_name},
    {"torch.nn.functional.celu_", kEverything, forward_same_name},
    {"torch.nn.functional.channel_shuffle", kEverything, forward_same_name},
    {"torch.nn.functional.conv1d", kEverything, forward_same_name},
    {"torch.nn.functional.conv2d", kEverything, forward_same_name},
    {"torch.nn.functional.conv3d", kEverything, forward_same_name},
    {"torch.nn.functional.conv_tbc", kEverything, forward_same_name},
    {"torch.nn.functional.conv_transpose1d", kEverything, forward_same_name},
    {"torch.nn.functional.conv_transpose2d", kEverything, forward_same_name},
    {"torch.nn.functional.conv_transpose3d", kEverything, forward_same_name},
    {"torch.nn.functional.cosine_similarity", kEverything, forward_same_name},
    {"torch.nn.functional.elu_", kEverything, forward_same_name},
    {"torch.nn.functional.gelu", kEverything, forward_same_name},
    {"torch.nn.functional.hardshrink", kEverything, forward_same_name},
    {"torch.nn.functional.hardtanh_", kEverything, forward_same_name},
    {"torch.nn.functional.leaky_relu_", kEverything, forward_same_name},
    {"torch.nn.functional.linear", kEverything, forward_same_name},
    {"torch.nn.functional.logsigmoid", kEverything, forward<kLogSigmoid>},
    {"torch.nn.functional.native_channel_shuffle", kEverything, forward_same_name},
    {"torch.nn.functional.pairwise_distance", kEverything, forward_same_name},
    {"torch.nn.functional.pdist", kEverything, forward_same_name},
    {"torch.nn.functional.pixel_shuffle", kEverything, forward_same_name},
    {"torch.nn.functional.pixel_unshuffle", kEverything, forward_same_name},
    {"torch.nn.functional.prelu", kEverything, forward_same_name},
    {"torch.nn.functional.relu_", kEverything, forward_same_name},
    {"torch.nn.functional.rms_norm", kEverything, forward_same_name},
    {"torch.nn.functional.rrelu_", kEverything, forward_same_name},
    {"torch.nn.functional.scaled_dot_product_attention", kEverything, forward_same_name},
    {"torch.nn.functional.selu_", kEverything, forward_same_name},
    {"torch.nn.functional.softplus", kEverything, forward_same_name},
    {"torch.nn.functional.softshrink", kEverything, forward_same_name},
    {"torch.nn.functional.threshold_", kEverything, forward_same_name},
});

}  // namespace

FunctionTable forwarded_functions() { return kForwardedFunctions; }

}  // namespace assay::aten
