// Sample calls of what torch.nn.functional is made of.
#include "decomposition_samples.h"

namespace assay::autograd {

namespace {

constexpr Sample kActivationSamples[] = {
    {"aten::_prelu_kernel", "edges(4, 6), normal(1, 6)"},
    {"aten::celu", "edges(4, 6), 0.7"},
    {"aten::elu", "edges(4, 6)"},
    {"aten::elu", "edges(4, 6), 1.5, 1.25, 0.75"},
    {"aten::gelu", "corners(4, 6), 'none'"},
    {"aten::gelu", "normal(2, 4, 6), 'tanh'"},
    {"aten::glu", "normal(4, 6)"},
    {"aten::glu", "normal(4, 6, 3), 0"},
    {"aten::hardshrink", "edges(4, 6), 0.5"},
    {"aten::hardsigmoid", "edges(4, 6)"},
    {"aten::hardswish", "edges(4, 6)"},
    {"aten::hardtanh", "edges(4, 6), -0.5, 3"},
    {"aten::leaky_relu", "edges(4, 6), 0.2"},
    {"aten::log_sigmoid_forward", "edges(4, 6)"},
    {"aten::mish", "edges(4, 6)"},
    {"aten::silu", "edges(4, 6)"},
    {"aten::softplus", "edges(4, 6), 0.5, 10"},
    {"aten::softshrink", "edges(4, 6), 0.5"},
    {"aten::threshold", "edges(4, 6), 0, 2", Dtypes::numbers},
    {"aten::_prelu_kernel_backward", "normal(4, 6), edges(4, 6), normal(1, 6)"},
    {"aten::elu_backward", "normal(4, 6), 1.5, 1.25, 0.75, False, corners(4, 6)"},
    {"aten::elu_backward", "normal(4, 6), 1.5, 1.25, 0.75, True, normal(4, 6)"},
    {"aten::gelu_backward", "normal(4, 6), normal(4, 6), 'none'"},
    {"aten::gelu_backward", "normal(4, 6), normal(4, 6), 'tanh'"},
    {"aten::glu_backward", "normal(4, 3), normal(4, 6), -1"},
    {"aten::hardshrink_backward", "normal(4, 6), corners(4, 6), 0.5"},
    {"aten::hardsigmoid_backward", "normal(4, 6), corners(4, 6)"},
    {"aten::hardswish_backward", "normal(4, 6), corners(4, 6)"},
    {"aten::hardtanh_backward", "normal(4, 6), corners(4, 6), -0.5, 3"},
    {"aten::leaky_relu_backward", "normal(4, 6), edges(4, 6), 0.2, False"},
    {"aten::log_sigmoid_backward", "normal(4, 6), normal(4, 6), unit(4, 6)"},
    {"aten::logit_backward", "normal(4, 6), normal(4, 6)"},
    {"aten::logit_backward", "normal(4, 6), corners(4, 6), 0.25"},
    {"aten::mish_backward", "normal(4, 6), normal(4, 6)"},
    {"aten::native_dropout_backward", "normal(4, 6), flags(4, 6), 1.25"},
    {"aten::rrelu_with_noise_backward",
     "normal(4, 6), normal(4, 6), unit(4, 6), 0.125, 0.5, True, False"},
    {"aten::rrelu_with_noise_backward",
     "normal(4, 6), normal(4, 6), unit(4, 6), 0.125, 0.5, False, False"},
    {"aten::sigmoid_backward", "normal(4, 6), unit(4, 6)"},
    {"aten::silu_backward", "normal(4, 6), normal(4, 6)"},
    {"aten::softplus_backward", "normal(4, 6), normal(4, 6), 0.5, 0.25"},
    {"aten::softshrink_backward", "normal(4, 6), corners(4, 6), 0.5"},
    {"aten::tanh_backward", "normal(4, 6), unit(4, 6)"},
    {"aten::threshold_backward", "normal(4, 6), edges(4, 6), 0.5"},
    {"aten::_log_softmax", "normal(4, 6), -1, False"},
    {"aten::_log_softmax", "normal(4, 6, 3), 1, False"},
    {"aten::_log_softmax_backward_data", "normal(4, 6), normal(4, 6), 1, dtype"},
    {"aten::_safe_softmax", "normal(4, 6), -1"},
    {"aten::_safe_softmax", "minus_infinity(2, 3), -1"},
    {"aten::_softmax", "normal(4, 6), -1, False"},
    {"aten::_softmax", "edges(4, 6), 0, False"},
    {"aten::_softmax", "normal(0, 6), 1, False"},
    {"aten::_softmax", "normal(), 0, False"},
    {"aten::_softmax_backward_data", "normal(4, 6), unit(4, 6), 1, dtype"},
    {"aten::logsumexp", "normal(), [0]"},
    {"aten::logsumexp", "normal(4, 6), [1]", Dtypes::numbers},
    {"aten::logsumexp", "edges(4, 6, 2), [0, -1], True"},
};

constexpr Sample kLossSamples[] = {
    {"aten::binary_cross_entropy_with_logits", "normal(4, 6), unit(4, 6)"},
    {"aten::binary_cross_entropy_with_logits", "normal(4, 6), unit(4, 6), unit(6), unit(6), sum"},
    {"aten::huber_loss", "normal(4, 6), normal(4, 6)"},
    {"aten::huber_loss", "normal(4, 6), normal(4, 6), none, 0.7"},
    {"aten::mse_loss", "normal(4, 6), normal(4, 6)"},
    {"aten::mse_loss", "normal(4, 6), normal(4, 6), none"},
    {"aten::mse_loss", "normal(4, 6), normal(6), sum"},
    {"aten::smooth_l1_loss", "normal(4, 6), normal(4, 6)"},
    {"aten::smooth_l1_loss", "normal(4, 6), normal(4, 6), none, 0.3"},
    {"aten::smooth_l1_loss", "normal(4, 6), normal(4, 6), none, 0.0"},
    {"aten::soft_margin_loss", "normal(4, 6), signs(4, 6)"},
    {"aten::soft_margin_loss", "normal(4, 6), signs(4, 6), none"},
    {"aten::soft_margin_loss", "row_major(4, 6), signs(4, 6), none"},
    {"aten::binary_cross_entropy_backward", "number(0.5), unit(4, 6), unit(4, 6)"},
    {"aten::binary_cross_entropy_backward",
     "normal(4, 6), unit(4, 6), unit(4, 6), unit(4, 6), none"},
    {"aten::huber_loss_backward", "number(0.5), normal(4, 6), normal(4, 6), mean, 0.7"},
    {"aten::mse_loss_backward", "number(0.5), normal(4, 6), normal(4, 6), mean"},
    {"aten::mse_loss_backward", "normal(4, 6), normal(4, 6), normal(4, 6), none"},
    {"aten::smooth_l1_loss_backward", "number(0.5), normal(4, 6), normal(4, 6), sum, 0.3"},
    {"aten::smooth_l1_loss_backward", "normal(4, 6), normal(4, 6), normal(4, 6), none, 0.0"},
    {"aten::soft_margin_loss_backward", "number(0.5), normal(4, 6), signs(4, 6), mean"},
    {"aten::nll_loss_forward", "normal(5, 4), index(3, 0, -100, 1, 1), None, mean, -100"},
    {"aten::nll_loss_forward", "normal(5, 4), labels(4, 5), unit(4), none, 1"},
    {"aten::nll_loss_forward", "normal(5, 4), labels(4, 5), unit(4), sum, 1"},
    {"aten::nll_loss_forward", "normal(4), labels(4), unit(4), mean, -100"},
    {"aten::nll_loss_forward", "normal(4), labels(4), None, none, -100"},
    {"aten::nll_loss_backward",
     "number(0.5), normal(5, 4), index(3, 0, -100, 1, 1), None, mean, -100, number(4)"},
    {"aten::nll_loss_backward",
     "normal(5), normal(5, 4), labels(4, 5), unit(4), none, 1, number(0)"},
    {"aten::nll_loss_backward", "number(0.5), normal(4), labels(4), unit(4), sum, -100, number(1)"},
    {"aten::nll_loss2d_forward", "normal(2, 4, 3, 3), labels(4, 2, 3, 3), unit(4), mean, 1"},
    {"aten::nll_loss2d_forward", "normal(2, 4, 3, 3), labels(4, 2, 3, 3), None, none, 1"},
    {"aten::nll_loss2d_backward",
     "number(0.5), normal(2, 4, 3, 3), labels(4, 2, 3, 3), unit(4), mean, 1, number(7)"},
    {"aten::nll_loss2d_backward",
     "normal(2, 3, 3), normal(2, 4, 3, 3), labels(4, 2, 3, 3), None, none, 1, number(0)"},
};

constexpr Sample kNormalisationSamples[] = {
    {"aten::_native_batch_norm_legit_functional",
     "normal(3, 4, 5, 5), normal(4), normal(4), normal(4), positive(4), True, 0.1, 1e-5"},
    {"aten::_native_batch_norm_legit_functional",
     "normal(3, 4), None, None, normal(4), positive(4), False, 0.1, 1e-5"},
    {"aten::_native_batch_norm_legit.no_stats",
     "normal(3, 4, 5), normal(4), normal(4), True, 0.1, 1e-5"},
    {"aten::_native_batch_norm_legit_no_training",
     "normal(3, 4, 5, 5), normal(4), normal(4), normal(4), positive(4), 0.1, 1e-5"},
    {"aten::native_batch_norm_backward",
     "normal(3, 4, 5, 5), normal(3, 4, 5, 5), normal(4), normal(4), positive(4), normal(4), "
     "positive(4), True, 1e-5, [True, True, True]"},
    {"aten::native_batch_norm_backward",
     "normal(3, 4, 5), normal(3, 4, 5), normal(4), normal(4), positive(4), normal(0), normal(0), "
     "False, 1e-5, [True, True, True]"},
    {"aten::native_batch_norm_backward",
     "normal(3, 4), normal(3, 4), None, None, None, normal(4), positive(4), True, 1e-5, [True, "
     "False, False]"},
    {"aten::native_layer_norm", "normal(3, 4, 6), [6], normal(6), normal(6), 1e-5"},
    {"aten::native_layer_norm", "normal(3, 4, 6), [4, 6], normal(4, 6), None, 1e-5"},
    {"aten::native_layer_norm", "normal(3, 6), [6], None, None, 1e-5"},
    {"aten::native_layer_norm", "normal(6), [6], normal(6), normal(6), 1e-5"},
    {"aten::native_layer_norm_backward",
     "normal(3, 4, 6), normal(3, 4, 6), [6], row_major(3, 4, 1), row_major(3, 4, 1), normal(6), "
     "normal(6), [True, True, True]"},
    {"aten::native_layer_norm_backward",
     "normal(3, 4, 6), normal(3, 4, 6), [4, 6], row_major(3, 1, 1), row_major(3, 1, 1), None, "
     "None, "
     "[True, False, False]"},
    {"aten::native_layer_norm_backward",
     "normal(6), normal(6), [6], row_major(1), row_major(1), normal(6), normal(6), [True, True, "
     "True]"},
    {"aten::native_group_norm", "normal(2, 6, 4, 5), normal(6), normal(6), 2, 6, 20, 3, 1e-5"},
    {"aten::native_group_norm", "normal(2, 6, 5), None, None, 2, 6, 5, 2, 1e-5"},
    {"aten::native_group_norm_backward",
     "in_format(2, 6, 4, 5), in_format(2, 6, 4, 5), row_major(2, 3), row_major(2, 3), "
     "row_major(6), "
     "2, 6, 20, "
     "3, [True, True, True]"},
    {"aten::native_group_norm_backward",
     "in_format(2, 6, 5), in_format(2, 6, 5), row_major(2, 2), row_major(2, 2), None, 2, 6, 5, 2, "
     "[True, "
     "False, False]"},
    {"aten::_native_batch_norm_legit_functional",
     "normal(3, 4, 5, 5), single(4), single(4), single(4), single(4), True, 0.1, 1e-5",
     Dtypes::bfloat16},
    {"aten::_native_batch_norm_legit_no_training",
     "normal(3, 4, 5, 5), single(4), single(4), single(4), single(4), 0.1, 1e-5", Dtypes::bfloat16},
    {"aten::native_batch_norm_backward",
     "normal(3, 4, 5, 5), normal(3, 4, 5, 5), single(4), single(4), single(4), single(4), "
     "single(4), True, 1e-5, [True, True, True]",
     Dtypes::bfloat16},
    {"aten::native_layer_norm", "normal(3, 4, 6), [6], single(6), single(6), 1e-5",
     Dtypes::bfloat16},
    {"aten::native_layer_norm_backward",
     "normal(3, 4, 6), normal(3, 4, 6), [6], single(3, 4, 1), single(3, 4, 1), single(6), "
     "single(6), [True, True, True]",
     Dtypes::bfloat16},
    {"aten::native_group_norm", "normal(2, 6, 4, 5), single(6), single(6), 2, 6, 20, 3, 1e-5",
     Dtypes::bfloat16},
    {"aten::native_group_norm_backward",
     "in_format(2, 6, 4, 5), in_format(2, 6, 4, 5), single(2, 3), single(2, 3), single(6), 2, 6, "
     "20, 3, [True, True, True]",
     Dtypes::bfloat16},
    {"aten::_weight_norm_interface", "row_major(4, 6, 3), row_major(4, 1, 1), 0"},
    {"aten::_weight_norm_interface", "row_major(4, 6, 3), row_major(1, 1, 3), 2"},
};

}  // namespace

SampleTable activation_samples() { return kActivationSamples; }

SampleTable loss_samples() { return kLossSamples; }

SampleTable normalisation_samples() { return kNormalisationSamples; }

}  // namespace assay::autograd
