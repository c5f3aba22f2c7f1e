// torch.nn.functional.multi_head_attention_forward, the whole of torch.nn.MultiheadAttention.
// Every step is eager's, in eager's order, so that the results are equal to the last bit.
#include <array>
#include <cmath>
#include <limits>

#include "aten/functions/attention_projection.h"
#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

at::Tensor concatenated(const at::Tensor& left, const at::Tensor& right, std::int64_t dim) {
  return run_tensor("aten::cat", {std::vector<at::Tensor>{left, right}, dim});
}

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

// One call, step by step; the steps run in the order they are written here.
class Attention {
 public:
  explicit Attention(const BoundArguments& arguments)
      : arguments_(arguments),
        query_(arguments.tensor("query")),
        key_(arguments.tensor("key")),
        value_(arguments.tensor("value")),
        attention_mask_(optional_tensor(arguments["attn_mask"])),
        padding_mask_(optional_tensor(arguments["key_padding_mask"])),
        heads_(arguments.integer("num_heads")),
        need_weights_(arguments.truth("need_weights")),
        is_causal_(arguments.truth("is_causal")) {}

  Value run() {
    add_batch_dimension();
    prepare_masks();
    project();
    check_attention_mask();
    append_bias();
    split_heads();
    append_zeros();
    merge_masks();
    const double dropout = arguments_.truth("training") ? arguments_.number("dropout_p") : 0.0;
    return need_weights_ ? with_weights(dropout) : without_weights(dropout);
  }

 private:
  void add_batch_dimension() {
    const std::int64_t dims = query_.dim();
    require(dims == 2 || dims == 3, "query should be unbatched 2D or batched 3D");
    require(key_.dim() == dims && value_.dim() == dims,
            "key and value must have as many dimensions as query");
    require(!padding_mask_ || padding_mask_->dim() == dims - 1,
            "key_padding_mask has the wrong number of dimensions");
    require(!attention_mask_ || attention_mask_->dim() == 2 || attention_mask_->dim() == 3,
            "attn_mask must be 2-D or 3-D");
    is_batched_ = dims == 3;
    if (!is_batched_) {
      query_ = query_.unsqueeze(1);
      key_ = key_.unsqueeze(1);
      value_ = value_.unsqueeze(1);
      if (padding_mask_) padding_mask_ = padding_mask_->unsqueeze(0);
    }
    length_ = query_.size(0);
    batch_ = query_.size(1);
    width_ = query_.size(2);
    require(width_ == arguments_.integer("embed_dim_to_check"), "unexpected embedding dimension");
    require(heads_ > 0 && width_ % heads_ == 0, "embed_dim must be divisible by num_heads");
    head_width_ = width_ / heads_;
  }

  void prepare_masks() {
    padding_mask_ = additive(padding_mask_, query_.scalar_type());
    require(!is_causal_ || attention_mask_, "need attn_mask if specifying the is_causal hint");
    if (is_causal_ && !padding_mask_ && !need_weights_) {
      // The mask only repeats the hint, which the attention operator understands.
      attention_mask_ = std::nullopt;
      return;
    }
    attention_mask_ = additive(attention_mask_, query_.scalar_type());
    if (padding_mask_) is_causal_ = false;
  }

  void project() {
    const OptionalTensor bias = optional_tensor(arguments_["in_proj_bias"]);
    if (arguments_.truth("use_separate_proj_weight")) {
      require(key_.sizes().slice(0, 2) == value_.sizes().slice(0, 2),
              "key and value have different lengths");
      projected_ = project_separately(
          query_, key_, value_,
          {arguments_.tensor("q_proj_weight"), arguments_.tensor("k_proj_weight"),
           arguments_.tensor("v_proj_weight")},
          bias);
    } else {
      require(key_.sizes() == value_.sizes(), "key and value have different shapes");
      projected_ = project_packed(query_, key_, value_, arguments_.tensor("in_proj_weight"), bias);
    }
  }

  void check_attention_mask() {
    if (!attention_mask_) return;
    const bool is_shared = attention_mask_->dim() == 2;
    if (is_shared) attention_mask_ = attention_mask_->unsqueeze(0);
    require(attention_mask_->size(0) == (is_shared ? 1 : batch_ * heads_) &&
                attention_mask_->size(1) == length_ && attention_mask_->size(2) == key_.size(0),
            "attn_mask has the wrong shape");
  }

  // A learned key and value at the end of every sequence.
  void append_bias() {
    const OptionalTensor key = optional_tensor(arguments_["bias_k"]);
    const OptionalTensor value = optional_tensor(arguments_["bias_v"]);
    require(key.has_value() == value.has_value(), "bias_k and bias_v must be given together");
    if (!key) return;
    require(arguments_["static_k"].is_none() && arguments_["static_v"].is_none(),
            "bias cannot be added to static key or value");
    projected_.key = concatenated(projected_.key, key->repeat({1, batch_, 1}), 0);
    projected_.value = concatenated(projected_.value, value->repeat({1, batch_, 1}), 0);
    pad_masks();
  }

  void split_heads() {
    const auto by_head = [&](const at::Tensor& tensor) {
      return tensor.view({tensor.size(0), batch_ * heads_, head_width_}).transpose(0, 1);
    };
    const auto given_or_split = [&](const char* parameter, const at::Tensor& tensor) {
      const OptionalTensor given = optional_tensor(arguments_[parameter]);
      require(!given || (given->size(0) == batch_ * heads_ && given->size(2) == head_width_),
              "static_k or static_v has the wrong shape");
      return given ? *given : by_head(tensor);
    };
    projected_.query = by_head(projected_.query);
    projected_.key = given_or_split("static_k", projected_.key);
    projected_.value = given_or_split("static_v", projected_.value);
  }

  void append_zeros() {
    if (!arguments_.truth("add_zero_attn")) return;
    const std::vector<std::int64_t> shape = {batch_ * heads_, 1, head_width_};
    const auto with_zeros = [&](const at::Tensor& tensor) {
      const at::Tensor zeros = run_tensor(
          "aten::zeros", {shape}, {{"dtype", tensor.scalar_type()}, {"device", tensor.device()}});
      return concatenated(tensor, zeros, 1);
    };
    projected_.key = with_zeros(projected_.key);
    projected_.value = with_zeros(projected_.value);
    pad_masks();
  }

  void merge_masks() {
    source_ = projected_.key.size(1);
    if (!padding_mask_) return;
    require(padding_mask_->size(0) == batch_ && padding_mask_->size(1) == source_,
            "key_padding_mask has the wrong shape");
    const at::Tensor expanded = padding_mask_->view({batch_, 1, 1, source_})
                                    .expand({-1, heads_, -1, -1})
                                    .reshape({batch_ * heads_, 1, source_});
    attention_mask_ = attention_mask_ ? attention_mask_->add(expanded) : expanded;
  }

  Value with_weights(double dropout) const {
    const double scale = std::sqrt(1.0 / static_cast<double>(head_width_));
    const at::Tensor query =
        run_tensor("aten::mul", {projected_.query, tensor_or_wrapped(Operand(scale).value)});
    const at::Tensor keys = projected_.key.transpose(-2, -1);
    at::Tensor weights = attention_mask_
                             ? run_tensor("aten::baddbmm", {*attention_mask_, query, keys})
                             : query.bmm(keys);
    weights = weights.softmax(-1);
    if (dropout > 0.0) weights = run_tensor("aten::dropout", {weights, dropout, true});
    const at::Tensor attended = weights.bmm(projected_.value);
    const at::Tensor output =
        output_of(attended.transpose(0, 1).reshape({length_ * batch_, width_}));
    weights = weights.view({batch_, heads_, length_, source_});
    if (arguments_.truth("average_attn_weights")) weights = weights.mean(1);
    if (!is_batched_) weights = weights.squeeze(0);
    return tuple_of({Operand(output).value, Operand(weights).value});
  }

  Value without_weights(double dropout) const {
    OptionalTensor mask = attention_mask_;
    if (mask) {
      mask = mask->size(0) == 1 ? mask->unsqueeze(0) : mask->view({batch_, heads_, -1, source_});
    }
    const auto with_batch = [&](const at::Tensor& tensor, std::int64_t length) {
      return tensor.view({batch_, heads_, length, head_width_});
    };
    const at::Tensor attended = run_tensor(
        "aten::scaled_dot_product_attention",
        {with_batch(projected_.query, length_), with_batch(projected_.key, source_),
         with_batch(projected_.value, source_), optional_operand(mask), dropout, is_causal_});
    const at::Tensor rows = attended.permute({2, 0, 1, 3}).reshape({batch_ * length_, width_});
    return tuple_of({Operand(output_of(rows)).value, Value()});
  }

  at::Tensor output_of(const at::Tensor& rows) const {
    const at::Tensor output = run_linear(rows, arguments_.tensor("out_proj_weight"),
                                         optional_tensor(arguments_["out_proj_bias"]));
    const at::Tensor shaped = output.view({length_, batch_, output.size(1)});
    return is_batched_ ? shaped : shaped.squeeze(1);
  }

  // One more column for a key that was added: nothing is masked there.
  void pad_masks() {
    const std::vector<std::int64_t> one_more = {0, 1};
    for (OptionalTensor* mask : {&attention_mask_, &padding_mask_}) {
      if (*mask) *mask = run_tensor("aten::pad", {**mask, one_more});
    }
  }

  const BoundArguments& arguments_;
  at::Tensor query_, key_, value_;
  OptionalTensor attention_mask_, padding_mask_;
  Projected projected_;
  std::int64_t heads_;
  std::int64_t length_ = 0, batch_ = 0, width_ = 0, head_width_ = 0;
  std::int64_t source_ = 0;  // the keys' length, with what was appended
  bool need_weights_, is_causal_;
  bool is_batched_ = true;
};

Value multi_head_attention_forward(const BoundArguments& arguments) {
  return Attention(arguments).run();
}

constexpr std::array kAttentionFunctions = std::to_array<TorchFunction>({
    {"torch.nn.functional.multi_head_attention_forward",
     "query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, "
     "bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, "
     "key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False, "
     "q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, "
     "average_attn_weights=True, is_causal=False",
     multi_head_attention_forward},
});

}  // namespace

FunctionTable attention_functions() { return kAttentionFunctions; }

}  // namespace assay::aten
