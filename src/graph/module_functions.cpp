// The modules of torch.nn that are one function of their inputs and hold no tensors.
#include <algorithm>
#include <array>

#include "graph/module_emitter.h"

namespace assay::graph {

namespace {

constexpr std::array kFunctionModules = std::to_array<FunctionRow>({
    // activations
    {"CELU", "alpha=1.0, inplace=False", "torch.nn.functional.celu", "alpha, inplace"},
    {"ELU", "alpha=1.0, inplace=False", "torch.nn.functional.elu", "alpha, inplace"},
    {"GELU", "approximate='none'", "torch.nn.functional.gelu", "approximate"},
    {"GLU", "dim=-1", "torch.nn.functional.glu", "dim"},
    {"Hardshrink", "lambd=0.5", "torch.nn.functional.hardshrink", "lambd"},
    {"Hardsigmoid", "inplace=False", "torch.nn.functional.hardsigmoid", "inplace"},
    {"Hardswish", "inplace=False", "torch.nn.functional.hardswish", "inplace"},
    {"Hardtanh", "min_val=-1.0, max_val=1.0, inplace=False", "torch.nn.functional.hardtanh",
     "min_val, max_val, inplace"},
    {"LeakyReLU", "negative_slope=0.01, inplace=False", "torch.nn.functional.leaky_relu",
     "negative_slope, inplace"},
    {"LogSigmoid", "", "torch.nn.functional.logsigmoid", ""},
    {"LogSoftmax", "dim=None", "torch.nn.functional.log_softmax", "dim"},
    {"Mish", "inplace=False", "torch.nn.functional.mish", "inplace"},
    {"RReLU", "lower=0.125, upper=0.3333333333333333, inplace=False", "torch.nn.functional.rrelu",
     "lower, upper, training, inplace"},
    {"ReLU", "inplace=False", "torch.nn.functional.relu", "inplace"},
    {"ReLU6", "inplace=False", "torch.nn.functional.relu6", "inplace"},
    {"SELU", "inplace=False", "torch.nn.functional.selu", "inplace"},
    {"SiLU", "inplace=False", "torch.nn.functional.silu", "inplace"},
    {"Sigmoid", "", "torch.sigmoid", ""},
    {"Softmax", "dim=None", "torch.nn.functional.softmax", "dim"},
    {"Softmin", "dim=None", "torch.nn.functional.softmin", "dim"},
    {"Softplus", "beta=1.0, threshold=20.0", "torch.nn.functional.softplus", "beta, threshold"},
    {"Softshrink", "lambd=0.5", "torch.nn.functional.softshrink", "lambd"},
    {"Softsign", "", "torch.nn.functional.softsign", ""},
    {"Tanh", "", "torch.tanh", ""},
    {"Tanhshrink", "", "torch.nn.functional.tanhshrink", ""},
    {"Threshold", "threshold, value, inplace=False", "torch.nn.functional.threshold",
     "threshold, value, inplace"},
    // dropout
    {"AlphaDropout", "p=0.5, inplace=False", "torch.nn.functional.alpha_dropout",
     "p, training, inplace"},
    {"Dropout", "p=0.5, inplace=False", "torch.nn.functional.dropout", "p, training, inplace"},
    {"Dropout1d", "p=0.5, inplace=False", "torch.nn.functional.dropout1d", "p, training, inplace"},
    {"Dropout2d", "p=0.5, inplace=False", "torch.nn.functional.dropout2d", "p, training, inplace"},
    {"Dropout3d", "p=0.5, inplace=False", "torch.nn.functional.dropout3d", "p, training, inplace"},
    {"FeatureAlphaDropout", "p=0.5, inplace=False", "torch.nn.functional.feature_alpha_dropout",
     "p, training, inplace"},
    // pooling
    {"AdaptiveAvgPool1d", "output_size", "torch.nn.functional.adaptive_avg_pool1d", "output_size"},
    {"AdaptiveAvgPool2d", "output_size", "torch.nn.functional.adaptive_avg_pool2d", "output_size"},
    {"AdaptiveAvgPool3d", "output_size", "torch.nn.functional.adaptive_avg_pool3d", "output_size"},
    {"AdaptiveMaxPool1d", "output_size, return_indices=False",
     "torch.nn.functional.adaptive_max_pool1d", "output_size, return_indices"},
    {"AdaptiveMaxPool2d", "output_size, return_indices=False",
     "torch.nn.functional.adaptive_max_pool2d", "output_size, return_indices"},
    {"AdaptiveMaxPool3d", "output_size, return_indices=False",
     "torch.nn.functional.adaptive_max_pool3d", "output_size, return_indices"},
    {"AvgPool1d", "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
     "torch.nn.functional.avg_pool1d",
     "kernel_size, stride, padding, ceil_mode, count_include_pad"},
    {"AvgPool2d",
     "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
     "divisor_override=None",
     "torch.nn.functional.avg_pool2d",
     "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"},
    {"AvgPool3d",
     "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
     "divisor_override=None",
     "torch.nn.functional.avg_pool3d",
     "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"},
    {"LPPool1d", "norm_type, kernel_size, stride=None, ceil_mode=False",
     "torch.nn.functional.lp_pool1d", "norm_type, kernel_size, stride, ceil_mode"},
    {"LPPool2d", "norm_type, kernel_size, stride=None, ceil_mode=False",
     "torch.nn.functional.lp_pool2d", "norm_type, kernel_size, stride, ceil_mode"},
    {"MaxPool1d",
     "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
     "torch.nn.functional.max_pool1d",
     "kernel_size, stride, padding, dilation, ceil_mode, return_indices"},
    {"MaxPool2d",
     "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
     "torch.nn.functional.max_pool2d",
     "kernel_size, stride, padding, dilation, ceil_mode, return_indices"},
    {"MaxPool3d",
     "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
     "torch.nn.functional.max_pool3d",
     "kernel_size, stride, padding, dilation, ceil_mode, return_indices"},
    // shapes
    {"ChannelShuffle", "groups", "torch.nn.functional.channel_shuffle", "groups"},
    {"Flatten", "start_dim=1, end_dim=-1", "torch.flatten", "start_dim, end_dim"},
    {"Fold", "output_size, kernel_size, dilation=1, padding=0, stride=1",
     "torch.nn.functional.fold", "output_size, kernel_size, dilation, padding, stride"},
    {"PixelShuffle", "upscale_factor", "torch.nn.functional.pixel_shuffle", "upscale_factor"},
    {"PixelUnshuffle", "downscale_factor", "torch.nn.functional.pixel_unshuffle",
     "downscale_factor"},
    {"Unfold", "kernel_size, dilation=1, padding=0, stride=1", "torch.nn.functional.unfold",
     "kernel_size, dilation, padding, stride"},
    {"Upsample",
     "size=None, scale_factor=None, mode='nearest', align_corners=None, "
     "recompute_scale_factor=None",
     "torch.nn.functional.interpolate",
     "size, scale_factor, mode, align_corners, recompute_scale_factor"},
    {"UpsamplingNearest2d", "size=None, scale_factor=None, mode='nearest'",
     "torch.nn.functional.interpolate", "size, scale_factor, mode"},
    {"UpsamplingBilinear2d", "size=None, scale_factor=None, mode='bilinear', align_corners=True",
     "torch.nn.functional.interpolate", "size, scale_factor, mode, align_corners"},
    {"LocalResponseNorm", "size, alpha=0.0001, beta=0.75, k=1.0",
     "torch.nn.functional.local_response_norm", "size, alpha, beta, k"},
    // distances and losses
    {"CosineSimilarity", "dim=1, eps=1e-08", "torch.nn.functional.cosine_similarity", "dim, eps",
     2},
    {"PairwiseDistance", "p=2.0, eps=1e-06, keepdim=False", "torch.nn.functional.pairwise_distance",
     "p, eps, keepdim", 2},
    {"BCELoss", "weight=None, size_average=None, reduce=None, reduction='mean'",
     "torch.nn.functional.binary_cross_entropy", "weight, reduction", 2},
    {"BCEWithLogitsLoss",
     "weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None",
     "torch.nn.functional.binary_cross_entropy_with_logits", "weight, reduction, pos_weight", 2},
    {"CrossEntropyLoss",
     "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', "
     "label_smoothing=0.0",
     "torch.nn.functional.cross_entropy", "weight, ignore_index, reduction, label_smoothing", 2},
    {"HuberLoss", "reduction='mean', delta=1.0", "torch.nn.functional.huber_loss",
     "reduction, delta", 2},
    {"KLDivLoss", "size_average=None, reduce=None, reduction='mean', log_target=False",
     "torch.nn.functional.kl_div", "reduction, log_target", 2},
    {"L1Loss", "size_average=None, reduce=None, reduction='mean'", "torch.nn.functional.l1_loss",
     "reduction", 2},
    {"MSELoss", "size_average=None, reduce=None, reduction='mean'", "torch.nn.functional.mse_loss",
     "reduction", 2},
    {"NLLLoss", "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'",
     "torch.nn.functional.nll_loss", "weight, ignore_index, reduction", 2},
    {"SmoothL1Loss", "size_average=None, reduce=None, reduction='mean', beta=1.0",
     "torch.nn.functional.smooth_l1_loss", "reduction, beta", 2},
    {"SoftMarginLoss", "size_average=None, reduce=None, reduction='mean'",
     "torch.nn.functional.soft_margin_loss", "reduction", 2},
});

}  // namespace

const FunctionRow* find_function_module(std::string_view name) {
  const auto* found = std::ranges::find(kFunctionModules, name, &FunctionRow::name);
  return found == kFunctionModules.end() ? nullptr : found;
}

}  // namespace assay::graph
