// torch.nn.functional.multi_head_attention_forward, the whole of torch.nn.MultiheadAttention.
// Every step is eager's, in eager's order, so that the results are equal to the last bit.
#include <array>
#include <cmath>
#include <limits>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

using OptionalTensor = std::optional<at::Tensor>;

Operand operand(const OptionalTensor& tensor) {
  return tensor ? Operand(*tensor) : Operand(std::nullopt);
}

at::Tensor linear(const at::Tensor& input, const at::Tensor& weight, const OptionalTensor& bias) {
  return run_tensor("aten::linear", {input, weight, operand(bias)});
}

struct Projected {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
};

void require(bool condition, const char* message) {
  if (!condition) throw UserError(std::string("multi_head_attention_forward: ") + message);
}

// A bool mask as a float one that is added: -inf where the mask is set.
OptionalTensor additive(const OptionalTensor& mask, at::ScalarType dtype) {
  if (!mask || mask->is_floating_point()) return mask;
  require(mask->scalar_type() == at::kBool, "only bool and floating types of masks are supported");
  return run_tensor("aten::zeros_like", {*mask}, {{"dtype", dtype}})
      .masked_fill_(*mask, -std::numeric_limits<double>::infinity());
}

// The parts of a projection done in one product, each contiguous.
std::vector<at::Tensor> separated(const at::Tensor& projection, std::int64_t parts,
                                  std::int64_t width) {
  return projection.unflatten(-1, {parts, width})
      .unsqueeze(0)
      .transpose(0, -2)
      .squeeze(-2)
      .contiguous()
      .unbind(0);
}

// How many products are made depends on which inputs are the same tensor.
Projected project_packed(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                         const at::Tensor& weight, const OptionalTensor& bias) {
  const std::int64_t width = query.size(-1);
  if (!key.is_same(value)) {
    const auto weights = weight.chunk(3);
    const auto biases = bias ? bias->chunk(3) : std::vector<at::Tensor>();
    const auto part = [&](std::size_t i) {
      return biases.empty() ? OptionalTensor() : OptionalTensor(biases[i]);
    };
    return {linear(query, weights[0], part(0)), linear(key, weights[1], part(1)),
            linear(value, weights[2], part(2))};
  }
  if (query.is_same(key)) {
    const auto parts = separated(linear(query, weight, bias), 3, width);
    return {parts[0], parts[1], parts[2]};
  }
  const std::vector<std::int64_t> widths = {width, width * 2};
  const auto weights = weight.split_with_sizes(widths);
  OptionalTensor query_bias;
  OptionalTensor other_bias;
  if (bias) {
    const auto biases = bias->split_with_sizes(widths);
    query_bias = biases[0];
    other_bias = biases[1];
  }
  const at::Tensor projected_query = linear(query, weights[0], query_bias);
  const auto parts = separated(linear(key, weights[1], other_bias), 2, width);
  return {projected_query, parts[0], parts[1]};
}

Projected project_separately(const BoundArguments& arguments, const at::Tensor& query,
                             const at::Tensor& key, const at::Tensor& value,
                             const OptionalTensor& bias) {
  const auto biases = bias ? bias->chunk(3) : std::vector<at::Tensor>();
  const auto part = [&](std::size_t i) {
    return biases.empty() ? OptionalTensor() : OptionalTensor(biases[i]);
  };
  return {linear(query, arguments.tensor("q_proj_weight"), part(0)),
          linear(key, arguments.tensor("k_proj_weight"), part(1)),
          linear(value, arguments.tensor("v_proj_weight"), part(2))};
}

// One more column for a key that was added: nothing is masked there.
void pad_by_one(OptionalTensor& mask) {
  if (mask) mask = run_tensor("aten::pad", {*mask, std::vector<std::int64_t>{0, 1}});
}

struct Masks {
  OptionalTensor attention;
  OptionalTensor padding;
};

void check_shapes(const BoundArguments& arguments, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, const Masks& masks) {
  const std::int64_t dims = query.dim();
  require(dims == 2 || dims == 3, "query should be unbatched 2D or batched 3D");
  require(key.dim() == dims && value.dim() == dims, "key and value need query's dimensions");
  require(!masks.padding || masks.padding->dim() == dims - 1, "bad key_padding_mask");
  require(!masks.attention || masks.attention->dim() == 2 || masks.attention->dim() == 3,
          "attn_mask must be 2-D or 3-D");
  if (dims == 2 && masks.attention && masks.attention->dim() == 3) {
    const std::array<std::int64_t, 3> expected = {arguments.integer("num_heads"), query.size(0),
                                                  key.size(0)};
    require(masks.attention->sizes() == at::IntArrayRef(expected), "bad shape of attn_mask");
  }
}

Value attend(const BoundArguments& arguments) {
  at::Tensor query = arguments.tensor("query");
  at::Tensor key = arguments.tensor("key");
  at::Tensor value = arguments.tensor("value");
  Masks masks = {optional_tensor(arguments["attn_mask"]),
                 optional_tensor(arguments["key_padding_mask"])};
  const bool need_weights = arguments.truth("need_weights");
  bool is_causal = arguments.truth("is_causal");
  const std::int64_t heads = arguments.integer("num_heads");

  check_shapes(arguments, query, key, value, masks);
  const bool is_batched = query.dim() == 3;
  if (!is_batched) {
    query = query.unsqueeze(1);
    key = key.unsqueeze(1);
    value = value.unsqueeze(1);
    if (masks.padding) masks.padding = masks.padding->unsqueeze(0);
  }
  const std::int64_t length = query.size(0);
  const std::int64_t batch = query.size(1);
  const std::int64_t width = query.size(2);
  const at::ScalarType dtype = query.scalar_type();

  masks.padding = additive(masks.padding, dtype);
  require(!is_causal || masks.attention, "need attn_mask if specifying the is_causal hint");
  if (is_causal && !masks.padding && !need_weights) {
    // The mask only repeats the hint, which the attention operator understands.
    masks.attention = std::nullopt;
  } else {
    masks.attention = additive(masks.attention, dtype);
    if (masks.padding) is_causal = false;
  }

  require(width == arguments.integer("embed_dim_to_check"), "unexpected embedding dimension");
  require(heads > 0 && width % heads == 0, "embed_dim must be divisible by num_heads");
  const std::int64_t head_width = width / heads;
  const OptionalTensor bias = optional_tensor(arguments["in_proj_bias"]);
  const bool separate = arguments.truth("use_separate_proj_weight");
  require(separate ? key.sizes().slice(0, 2) == value.sizes().slice(0, 2)
                   : key.sizes() == value.sizes(),
          "key and value have different shapes");
  auto [q, k, v] =
      separate ? project_separately(arguments, query, key, value, bias)
               : project_packed(query, key, value, arguments.tensor("in_proj_weight"), bias);

  if (masks.attention) {
    const std::int64_t source = key.size(0);
    if (masks.attention->dim() == 2) {
      require(masks.attention->size(0) == length && masks.attention->size(1) == source,
              "bad shape of the 2D attn_mask");
      masks.attention = masks.attention->unsqueeze(0);
    } else {
      require(masks.attention->size(0) == batch * heads && masks.attention->size(1) == length &&
                  masks.attention->size(2) == source,
              "bad shape of the 3D attn_mask");
    }
  }

  const OptionalTensor key_bias = optional_tensor(arguments["bias_k"]);
  const OptionalTensor value_bias = optional_tensor(arguments["bias_v"]);
  const OptionalTensor static_key = optional_tensor(arguments["static_k"]);
  const OptionalTensor static_value = optional_tensor(arguments["static_v"]);
  require(key_bias.has_value() == value_bias.has_value(), "bias_k and bias_v go together");
  if (key_bias) {
    require(!static_key && !static_value, "bias cannot be added to static key or value");
    k = run_tensor("aten::cat", {std::vector<at::Tensor>{k, key_bias->repeat({1, batch, 1})}});
    v = run_tensor("aten::cat", {std::vector<at::Tensor>{v, value_bias->repeat({1, batch, 1})}});
    pad_by_one(masks.attention);
    pad_by_one(masks.padding);
  }

  const auto by_head = [&](const at::Tensor& tensor) {
    return tensor.view({tensor.size(0), batch * heads, head_width}).transpose(0, 1);
  };
  q = by_head(q);
  k = static_key ? *static_key : by_head(k);
  v = static_value ? *static_value : by_head(v);
  require(k.size(0) == batch * heads && k.size(2) == head_width, "bad shape of static_k");
  require(v.size(0) == batch * heads && v.size(2) == head_width, "bad shape of static_v");

  if (arguments.truth("add_zero_attn")) {
    const auto with_zeros = [&](const at::Tensor& tensor) {
      const at::Tensor zeros =
          run_tensor("aten::zeros", {std::vector<std::int64_t>{batch * heads, 1, head_width}},
                     {{"dtype", tensor.scalar_type()}, {"device", tensor.device()}});
      return run_tensor("aten::cat", {std::vector<at::Tensor>{tensor, zeros}, 1});
    };
    k = with_zeros(k);
    v = with_zeros(v);
    pad_by_one(masks.attention);
    pad_by_one(masks.padding);
  }

  const std::int64_t source = k.size(1);
  if (masks.padding) {
    require(masks.padding->size(0) == batch && masks.padding->size(1) == source,
            "bad shape of key_padding_mask");
    const at::Tensor expanded = masks.padding->view({batch, 1, 1, source})
                                    .expand({-1, heads, -1, -1})
                                    .reshape({batch * heads, 1, source});
    masks.attention = masks.attention ? masks.attention->add(expanded) : expanded;
  }
  const double dropout = arguments.truth("training") ? arguments.number("dropout_p") : 0.0;

  const auto output_of = [&](const at::Tensor& rows) {
    const at::Tensor output = linear(rows, arguments.tensor("out_proj_weight"),
                                     optional_tensor(arguments["out_proj_bias"]));
    const at::Tensor shaped = output.view({length, batch, output.size(1)});
    return is_batched ? shaped : shaped.squeeze(1);
  };

  if (need_weights) {
    const double scale = std::sqrt(1.0 / static_cast<double>(head_width));
    const at::Tensor scaled = run_tensor("aten::mul", {q, tensor_or_wrapped(Operand(scale).value)});
    const at::Tensor keys = k.transpose(-2, -1);
    at::Tensor weights = masks.attention
                             ? run_tensor("aten::baddbmm", {*masks.attention, scaled, keys})
                             : scaled.bmm(keys);
    weights = weights.softmax(-1);
    if (dropout > 0.0) weights = run_tensor("aten::dropout", {weights, dropout, true});
    const at::Tensor attended = weights.bmm(v);
    const at::Tensor output = output_of(attended.transpose(0, 1).reshape({length * batch, width}));
    weights = weights.view({batch, heads, length, source});
    if (arguments.truth("average_attn_weights")) weights = weights.mean(1);
    return tuple_of(
        {Operand(output).value, Operand(is_batched ? weights : weights.squeeze(0)).value});
  }

  if (masks.attention) {
    masks.attention = masks.attention->size(0) == 1 && masks.attention->dim() == 3
                          ? masks.attention->unsqueeze(0)
                          : masks.attention->view({batch, heads, -1, source});
  }
  const at::Tensor attended = run_tensor(
      "aten::scaled_dot_product_attention",
      {q.view({batch, heads, length, head_width}), k.view({batch, heads, source, head_width}),
       v.view({batch, heads, source, head_width}), operand(masks.attention), dropout, is_causal});
  return tuple_of(
      {Operand(output_of(attended.permute({2, 0, 1, 3}).reshape({batch * length, width}))).value,
       Value()});
}

constexpr std::array kFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.multi_head_attention_forward",
     "query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, "
     "bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, "
     "key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False, "
     "q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, "
     "average_attn_weights=True, is_causal=False",
     attend},
});

}  // namespace

FunctionTable attention_functions() { return kFunctions; }

}  // namespace assay::aten
