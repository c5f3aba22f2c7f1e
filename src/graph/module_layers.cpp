// The modules of torch.nn that hold parameters, or whose call is more than one function.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "graph/module_emitter.h"

namespace assay::graph {

namespace {

using Sizes = std::vector<std::int64_t>;

Argument list_argument(const Sizes& sizes) {
  List made;
  for (const std::int64_t size : sizes) made.items.emplace_back(size);
  return made;
}

std::int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// torch.nn's usual bound: kaiming_uniform with a = sqrt(5), and the same for the bias.
Initial fan_in_bound(std::int64_t fan_in) {
  return Initial::uniform(fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.0);
}

Argument emit_identity(ModuleEmitter& emitter) { return emitter.input(0); }

Argument emit_linear(ModuleEmitter& emitter) {
  const std::int64_t in = emitter.integer("in_features");
  const std::int64_t out = emitter.integer("out_features");
  const Argument weight = emitter.parameter("weight", {out, in}, fan_in_bound(in));
  const Argument bias =
      emitter.truth("bias") ? emitter.parameter("bias", {out}, fan_in_bound(in)) : Argument();
  return emitter.call("torch.nn.functional.linear", {emitter.input(0), weight, bias});
}

Argument emit_bilinear(ModuleEmitter& emitter) {
  const Sizes sizes = {emitter.integer("out_features"), emitter.integer("in1_features"),
                       emitter.integer("in2_features")};
  const Initial initial = fan_in_bound(sizes[1]);
  const Argument weight = emitter.parameter("weight", sizes, initial);
  const Argument bias =
      emitter.truth("bias") ? emitter.parameter("bias", {sizes[0]}, initial) : Argument();
  return emitter.call("torch.nn.functional.bilinear",
                      {emitter.input(0), emitter.input(1), weight, bias});
}

// ---- convolutions ----

// Other padding modes pad first: the last dimension's sides come first.
Argument padded(ModuleEmitter& emitter, const Sizes& padding, const std::string& mode) {
  Sizes sides;
  for (auto side = padding.rbegin(); side != padding.rend(); ++side) {
    sides.push_back(*side);
    sides.push_back(*side);
  }
  return emitter.call("torch.nn.functional.pad", {emitter.input(0), list_argument(sides)},
                      {{"mode", mode}});
}

template <std::size_t rank>
Argument emit_convolution(ModuleEmitter& emitter) {
  const std::int64_t in = emitter.integer("in_channels");
  const std::int64_t out = emitter.integer("out_channels");
  const std::int64_t groups = emitter.integer("groups");
  if (groups <= 0) throw emitter.error("needs a positive number of groups");
  const Sizes kernel = emitter.integers("kernel_size", rank);
  Sizes weight_sizes = {out, in / groups};
  weight_sizes.insert(weight_sizes.end(), kernel.begin(), kernel.end());
  const Initial initial = fan_in_bound(in / groups * product(kernel));
  const Argument weight = emitter.parameter("weight", weight_sizes, initial);
  const Argument bias =
      emitter.truth("bias") ? emitter.parameter("bias", {out}, initial) : Argument();
  Argument input = emitter.input(0);
  Argument padding = emitter["padding"].get_if<std::string>() != nullptr
                         ? emitter["padding"]
                         : list_argument(emitter.integers("padding", rank));
  const std::string mode = emitter.text("padding_mode");
  if (mode != "zeros") {
    if (padding.get_if<std::string>() != nullptr) {
      throw emitter.error("pads in a mode that Assay does not know for this padding");
    }
    input = padded(emitter, emitter.integers("padding", rank), mode);
    padding = list_argument(Sizes(rank, 0));
  }
  return emitter.call("torch.nn.functional.conv" + std::to_string(rank) + "d",
                      {input, weight, bias, list_argument(emitter.integers("stride", rank)),
                       padding, list_argument(emitter.integers("dilation", rank)), groups});
}

template <std::size_t rank>
Argument emit_transposed(ModuleEmitter& emitter) {
  const std::int64_t in = emitter.integer("in_channels");
  const std::int64_t out = emitter.integer("out_channels");
  const std::int64_t groups = emitter.integer("groups");
  if (groups <= 0) throw emitter.error("needs a positive number of groups");
  const Sizes kernel = emitter.integers("kernel_size", rank);
  Sizes weight_sizes = {in, out / groups};
  weight_sizes.insert(weight_sizes.end(), kernel.begin(), kernel.end());
  const Initial initial = fan_in_bound(out / groups * product(kernel));
  const Argument weight = emitter.parameter("weight", weight_sizes, initial);
  const Argument bias =
      emitter.truth("bias") ? emitter.parameter("bias", {out}, initial) : Argument();
  const auto list = [&](std::string_view name) {
    return list_argument(emitter.integers(name, rank));
  };
  return emitter.call("torch.nn.functional.conv_transpose" + std::to_string(rank) + "d",
                      {emitter.input(0), weight, bias, list("stride"), list("padding"),
                       list("output_padding"), groups, list("dilation")});
}

// ---- normalization ----

struct Affine {
  Argument weight, bias;
};

Affine affine_parameters(ModuleEmitter& emitter, const Sizes& sizes, bool is_affine) {
  Affine made;
  if (is_affine) made.weight = emitter.parameter("weight", sizes, Initial::constant(1));
  if (is_affine && emitter.truth("bias")) {
    made.bias = emitter.parameter("bias", sizes, Initial::zeros());
  }
  return made;
}

struct Statistics {
  Argument mean, variance;
};

Statistics running_statistics(ModuleEmitter& emitter, std::int64_t features) {
  if (!emitter.truth("track_running_stats")) return {};
  return {emitter.buffer("running_mean", {features}, Initial::zeros()),
          emitter.buffer("running_var", {features}, Initial::constant(1))};
}

Argument emit_batch_norm(ModuleEmitter& emitter) {
  const std::int64_t features = emitter.integer("num_features");
  const bool tracks = emitter.truth("track_running_stats");
  const auto [weight, bias] = affine_parameters(emitter, {features}, emitter.truth("affine"));
  const Statistics statistics = running_statistics(emitter, features);
  Argument momentum = emitter["momentum"];
  if (tracks && emitter.is_training()) {
    const Argument count =
        emitter.buffer("num_batches_tracked", {}, Initial::zeros(), c10::ScalarType::Long);
    emitter.method("add_", {count, 1});
    if (momentum.is_none()) throw emitter.error("averages its statistics, which a graph cannot");
  }
  if (momentum.is_none()) momentum = 0.0;
  const bool uses_batch = emitter.is_training() || !tracks;
  return emitter.call("torch.nn.functional.batch_norm",
                      {emitter.input(0), statistics.mean, statistics.variance, weight, bias,
                       uses_batch, momentum, emitter["eps"]});
}

Argument emit_instance_norm(ModuleEmitter& emitter) {
  const std::int64_t features = emitter.integer("num_features");
  const auto [weight, bias] = affine_parameters(emitter, {features}, emitter.truth("affine"));
  const Statistics statistics = running_statistics(emitter, features);
  const bool uses_input = emitter.is_training() || !emitter.truth("track_running_stats");
  return emitter.call("torch.nn.functional.instance_norm",
                      {emitter.input(0), statistics.mean, statistics.variance, weight, bias,
                       uses_input, emitter["momentum"], emitter["eps"]});
}

Sizes normalized_shape(const ModuleEmitter& emitter) {
  return emitter["normalized_shape"].items().empty() ? Sizes{emitter.integer("normalized_shape")}
                                                     : emitter.integers("normalized_shape", 0);
}

Argument emit_layer_norm(ModuleEmitter& emitter) {
  const Sizes sizes = normalized_shape(emitter);
  const auto [weight, bias] =
      affine_parameters(emitter, sizes, emitter.truth("elementwise_affine"));
  return emitter.call("torch.nn.functional.layer_norm",
                      {emitter.input(0), list_argument(sizes), weight, bias, emitter["eps"]});
}

Argument emit_rms_norm(ModuleEmitter& emitter) {
  const Sizes sizes = normalized_shape(emitter);
  const Argument weight = emitter.truth("elementwise_affine")
                              ? emitter.parameter("weight", sizes, Initial::constant(1))
                              : Argument();
  return emitter.call("torch.nn.functional.rms_norm",
                      {emitter.input(0), list_argument(sizes), weight, emitter["eps"]});
}

Argument emit_group_norm(ModuleEmitter& emitter) {
  const auto [weight, bias] =
      affine_parameters(emitter, {emitter.integer("num_channels")}, emitter.truth("affine"));
  return emitter.call("torch.nn.functional.group_norm",
                      {emitter.input(0), emitter["num_groups"], weight, bias, emitter["eps"]});
}

// ---- embeddings ----

Argument emit_embedding(ModuleEmitter& emitter) {
  const Argument weight = emitter.parameter(
      "weight", {emitter.integer("num_embeddings"), emitter.integer("embedding_dim")},
      Initial::normal());
  return emitter.call("torch.nn.functional.embedding",
                      {emitter.input(0), weight, emitter["padding_idx"], emitter["max_norm"],
                       emitter["norm_type"], emitter["scale_grad_by_freq"], emitter["sparse"]});
}

Argument emit_embedding_bag(ModuleEmitter& emitter) {
  const Argument weight = emitter.parameter(
      "weight", {emitter.integer("num_embeddings"), emitter.integer("embedding_dim")},
      Initial::normal());
  return emitter.call(
      "torch.nn.functional.embedding_bag",
      {emitter.input(0, "input"), weight, emitter.input_or(1, "offsets", Argument()),
       emitter["max_norm"], emitter["norm_type"], emitter["scale_grad_by_freq"], emitter["mode"],
       emitter["sparse"], emitter.input_or(2, "per_sample_weights", Argument()),
       emitter["include_last_offset"], emitter["padding_idx"]});
}

// ---- padding, activations with parameters, shapes ----

template <std::size_t rank>
Argument emit_padding(ModuleEmitter& emitter) {
  const std::string_view name = emitter.module().constructor;
  const auto starts = [&](std::string_view kind) {
    return name.substr(name.rfind('.') + 1).starts_with(kind);
  };
  std::vector<NamedArgument> kwargs;
  if (starts("Reflection")) {
    kwargs = {{"mode", "reflect"}};
  } else if (starts("Replication")) {
    kwargs = {{"mode", "replicate"}};
  } else if (starts("Circular")) {
    kwargs = {{"mode", "circular"}};
  } else {
    kwargs = {{"mode", "constant"}, {"value", starts("Constant") ? emitter["value"] : 0.0}};
  }
  return emitter.call("torch.nn.functional.pad",
                      {emitter.input(0), list_argument(emitter.integers("padding", 2 * rank))},
                      std::move(kwargs));
}

Argument emit_prelu(ModuleEmitter& emitter) {
  const auto* initial = emitter["init"].get_if<double>();
  const Argument weight =
      emitter.parameter("weight", {emitter.integer("num_parameters")},
                        Initial::constant(initial == nullptr ? 0.25 : *initial));
  return emitter.call("torch.nn.functional.prelu", {emitter.input(0), weight});
}

Argument emit_softmax2d(ModuleEmitter& emitter) {
  return emitter.call("torch.nn.functional.softmax", {emitter.input(0)}, {{"dim", -3}});
}

Argument emit_unflatten(ModuleEmitter& emitter) {
  return emitter.method("unflatten",
                        {emitter.input(0), emitter["dim"], emitter["unflattened_size"]});
}

// ---- recurrent layers ----

struct Recurrent {
  std::int64_t input, hidden, layers, directions, projection;
  Argument weights;
};

// The weights in the order that the operators take them: by layer and direction.
Recurrent recurrent_weights(ModuleEmitter& emitter, std::int64_t gates) {
  Recurrent made{emitter.integer("input_size"), emitter.integer("hidden_size"),
                 emitter.integer("num_layers"), emitter.truth("bidirectional") ? 2 : 1,
                 emitter.integer("proj_size"),  {}};
  const Initial initial = fan_in_bound(made.hidden);
  const std::int64_t output = made.projection > 0 ? made.projection : made.hidden;
  List weights;
  for (std::int64_t layer = 0; layer < made.layers; ++layer) {
    for (std::int64_t direction = 0; direction < made.directions; ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      const std::int64_t in = layer == 0 ? made.input : output * made.directions;
      const std::int64_t rows = gates * made.hidden;
      weights.items.push_back(emitter.parameter("weight_ih" + suffix, {rows, in}, initial));
      weights.items.push_back(emitter.parameter("weight_hh" + suffix, {rows, output}, initial));
      if (emitter.truth("bias")) {
        weights.items.push_back(emitter.parameter("bias_ih" + suffix, {rows}, initial));
        weights.items.push_back(emitter.parameter("bias_hh" + suffix, {rows}, initial));
      }
      if (made.projection > 0) {
        weights.items.push_back(
            emitter.parameter("weight_hr" + suffix, {made.projection, made.hidden}, initial));
      }
    }
  }
  made.weights = std::move(weights);
  return made;
}

// Zeros of (layers, batch, width), where the call gives no state.
Argument zero_state(ModuleEmitter& emitter, const Recurrent& layer, std::int64_t width) {
  const Argument batch =
      emitter.method("size", {emitter.input(0), emitter.truth("batch_first") ? 0 : 1});
  return emitter.call("torch.zeros", {layer.layers * layer.directions, batch, width},
                      {{"dtype", emitter.dtype()}});
}

std::vector<Argument> recurrent_call(ModuleEmitter& emitter, const Recurrent& layer,
                                     Argument state) {
  return {emitter.input(0),      std::move(state),      layer.weights,
          emitter.truth("bias"), layer.layers,          emitter["dropout"],
          emitter.is_training(), layer.directions == 2, emitter.truth("batch_first")};
}

Argument emit_lstm(ModuleEmitter& emitter) {
  const Recurrent layer = recurrent_weights(emitter, 4);
  Argument state = emitter.input_or(1, "hx", Argument());
  if (state.is_none()) {
    const std::int64_t output = layer.projection > 0 ? layer.projection : layer.hidden;
    state = List{{zero_state(emitter, layer, output), zero_state(emitter, layer, layer.hidden)}};
  }
  const Argument result = emitter.call("torch._VF.lstm", recurrent_call(emitter, layer, state));
  return Tuple{
      {emitter.item(result, 0), Tuple{{emitter.item(result, 1), emitter.item(result, 2)}}}};
}

template <std::int64_t gates>
Argument emit_recurrent(ModuleEmitter& emitter) {
  const Recurrent layer = recurrent_weights(emitter, gates);
  Argument state = emitter.input_or(1, "hx", Argument());
  if (state.is_none()) state = zero_state(emitter, layer, layer.hidden);
  std::string function = "torch._VF.gru";
  if (gates == 1) {
    function = emitter.text("nonlinearity") == "relu" ? "torch._VF.rnn_relu" : "torch._VF.rnn_tanh";
  }
  const Argument result = emitter.call(function, recurrent_call(emitter, layer, state));
  return Tuple{{emitter.item(result, 0), emitter.item(result, 1)}};
}

// ---- attention ----

Argument emit_attention(ModuleEmitter& emitter) {
  const std::int64_t width = emitter.integer("embed_dim");
  for (const char* name : {"kdim", "vdim"}) {
    if (!emitter[name].is_none() && emitter.integer(name) != width) {
      throw emitter.error("has keys of another width, which Assay cannot make without Python");
    }
  }
  const bool has_bias = emitter.truth("bias");
  const auto row = [&](const std::string& name) {
    return emitter.truth("add_bias_kv") ? emitter.parameter(name, {1, 1, width}, Initial::normal())
                                        : Argument();
  };
  const Argument in_weight =
      emitter.parameter("in_proj_weight", {3 * width, width},
                        Initial::uniform(std::sqrt(6.0 / static_cast<double>(4 * width))));
  const Argument in_bias =
      has_bias ? emitter.parameter("in_proj_bias", {3 * width}, Initial::zeros()) : Argument();
  const Argument key_bias = row("bias_k");
  const Argument value_bias = row("bias_v");
  const Argument out_weight =
      emitter.parameter("out_proj_weight", {width, width}, fan_in_bound(width));
  const Argument out_bias =
      has_bias ? emitter.parameter("out_proj_bias", {width}, Initial::zeros()) : Argument();
  std::vector<Argument> inputs = {emitter.input(0, "query"), emitter.input(1, "key"),
                                  emitter.input(2, "value")};
  const bool batch_first = emitter.truth("batch_first");
  if (batch_first) {
    for (Argument& input : inputs) input = emitter.method("transpose", {input, 1, 0});
  }
  const Argument result = emitter.call(
      "torch.nn.functional.multi_head_attention_forward",
      {inputs[0], inputs[1], inputs[2], width, emitter["num_heads"], in_weight, in_bias, key_bias,
       value_bias, emitter["add_zero_attn"], emitter["dropout"], out_weight, out_bias},
      {{"training", emitter.is_training()},
       {"key_padding_mask", emitter.input_or(3, "key_padding_mask", Argument())},
       {"need_weights", emitter.input_or(4, "need_weights", true)},
       {"attn_mask", emitter.input_or(5, "attn_mask", Argument())},
       {"average_attn_weights", emitter.input_or(6, "average_attn_weights", true)},
       {"is_causal", emitter.input_or(7, "is_causal", false)}});
  const Argument attended = emitter.item(result, 0);
  return Tuple{{batch_first ? emitter.method("transpose", {attended, 1, 0}) : attended,
                emitter.item(result, 1)}};
}

constexpr std::string_view kConvolution =
    "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', device=None, dtype=None";
constexpr std::string_view kTransposed =
    "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, "
    "bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None";
constexpr std::string_view kBatchNorm =
    "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, "
    "process_group=None, device=None, dtype=None, bias=True";
constexpr std::string_view kInstanceNorm =
    "num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False, device=None, "
    "dtype=None, bias=True";
constexpr std::string_view kRecurrent =
    "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, "
    "bidirectional=False, proj_size=0, device=None, dtype=None";

constexpr std::array kLayers = std::to_array<ModuleRow>({
    {"Identity", "", emit_identity},
    {"Linear", "in_features, out_features, bias=True, device=None, dtype=None", emit_linear},
    {"NonDynamicallyQuantizableLinear",
     "in_features, out_features, bias=True, device=None, dtype=None", emit_linear},
    {"Bilinear", "in1_features, in2_features, out_features, bias=True, device=None, dtype=None",
     emit_bilinear},
    {"Conv1d", kConvolution, emit_convolution<1>},
    {"Conv2d", kConvolution, emit_convolution<2>},
    {"Conv3d", kConvolution, emit_convolution<3>},
    {"ConvTranspose1d", kTransposed, emit_transposed<1>},
    {"ConvTranspose2d", kTransposed, emit_transposed<2>},
    {"ConvTranspose3d", kTransposed, emit_transposed<3>},
    {"BatchNorm1d", kBatchNorm, emit_batch_norm},
    {"BatchNorm2d", kBatchNorm, emit_batch_norm},
    {"BatchNorm3d", kBatchNorm, emit_batch_norm},
    {"SyncBatchNorm", kBatchNorm, emit_batch_norm},
    {"InstanceNorm1d", kInstanceNorm, emit_instance_norm},
    {"InstanceNorm2d", kInstanceNorm, emit_instance_norm},
    {"InstanceNorm3d", kInstanceNorm, emit_instance_norm},
    {"LayerNorm",
     "normalized_shape, eps=1e-05, elementwise_affine=True, bias=True, device=None, dtype=None",
     emit_layer_norm},
    {"RMSNorm", "normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None",
     emit_rms_norm},
    {"GroupNorm",
     "num_groups, num_channels, eps=1e-05, affine=True, device=None, dtype=None, bias=True",
     emit_group_norm},
    {"Embedding",
     "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, "
     "scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None",
     emit_embedding},
    {"EmbeddingBag",
     "num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
     "mode='mean', sparse=False, _weight=None, include_last_offset=False, padding_idx=None, "
     "device=None, dtype=None",
     emit_embedding_bag},
    {"CircularPad1d", "padding", emit_padding<1>},
    {"CircularPad2d", "padding", emit_padding<2>},
    {"CircularPad3d", "padding", emit_padding<3>},
    {"ConstantPad1d", "padding, value", emit_padding<1>},
    {"ConstantPad2d", "padding, value", emit_padding<2>},
    {"ConstantPad3d", "padding, value", emit_padding<3>},
    {"ReflectionPad1d", "padding", emit_padding<1>},
    {"ReflectionPad2d", "padding", emit_padding<2>},
    {"ReflectionPad3d", "padding", emit_padding<3>},
    {"ReplicationPad1d", "padding", emit_padding<1>},
    {"ReplicationPad2d", "padding", emit_padding<2>},
    {"ReplicationPad3d", "padding", emit_padding<3>},
    {"ZeroPad1d", "padding, value=0.0", emit_padding<1>},
    {"ZeroPad2d", "padding, value=0.0", emit_padding<2>},
    {"ZeroPad3d", "padding, value=0.0", emit_padding<3>},
    {"PReLU", "num_parameters=1, init=0.25, device=None, dtype=None", emit_prelu},
    {"Softmax2d", "", emit_softmax2d},
    {"Unflatten", "dim, unflattened_size", emit_unflatten},
    {"LSTM", kRecurrent, emit_lstm},
    {"GRU", kRecurrent, emit_recurrent<3>},
    {"RNN",
     "input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, "
     "dropout=0.0, bidirectional=False, proj_size=0, device=None, dtype=None",
     emit_recurrent<1>},
    {"MultiheadAttention",
     "embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, "
     "kdim=None, vdim=None, batch_first=False, device=None, dtype=None",
     emit_attention},
});

}  // namespace

const ModuleRow* find_layer(std::string_view name) {
  const auto* found = std::ranges::find(kLayers, name, &ModuleRow::name);
  return found == kLayers.end() ? nullptr : found;
}

}  // namespace assay::graph
