#include "aten/flex_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "assay/error.h"

namespace assay::aten {

namespace {

namespace functorch = at::functorch;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr std::size_t kIndices = 4;  // batch, head, query, key

at::Tensor tensor_at(const std::vector<Value>& arguments, std::size_t at) {
  if (!arguments[at].is_tensor()) {
    throw UserError("argument " + std::to_string(at) + " of flex_attention must be a tensor, not " +
                    type_name(arguments[at]));
  }
  return arguments[at].leaf.toTensor();
}

std::vector<Value> items_at(const std::vector<Value>& arguments, std::size_t at) {
  return at < arguments.size() ? unpack(arguments[at]) : std::vector<Value>();
}

bool is_subgraph(const Value& value) { return value.kind == Value::Kind::subgraph; }

// The four levels of vmap, one for each index of a score. They are left also if a call raises.
class Levels {
 public:
  explicit Levels(at::IntArrayRef sizes) : sizes_(sizes.vec()) {
    for (const std::int64_t size : sizes_) {
      levels_.push_back(functorch::initAndPushDynamicLayer(
          functorch::TransformType::Vmap, c10::SymInt(size), functorch::RandomnessType::Error));
    }
  }
  ~Levels() {
    for (std::size_t i = 0; i < levels_.size(); ++i) functorch::popDynamicLayerAndDeleteMetadata();
  }
  Levels(const Levels&) = delete;
  Levels& operator=(const Levels&) = delete;

  /// One element of a tensor with all four dimensions.
  Value element(at::Tensor tensor) const {
    for (const std::int64_t level : levels_) tensor = functorch::addBatchDim(tensor, 0, level);
    return Value(c10::IValue(tensor));
  }
  Value index(std::size_t dim, const at::TensorOptions& options) const {
    return Value(
        c10::IValue(functorch::addBatchDim(at::arange(sizes_[dim], options), 0, levels_[dim])));
  }
  /// The results for all elements. The innermost level comes off first.
  at::Tensor all(at::Tensor tensor) const {
    for (std::size_t i = levels_.size(); i-- > 0;) {
      const functorch::BatchedTensorImpl* batched = functorch::maybeGetBatchedImpl(tensor);
      if (batched == nullptr || batched->level() < levels_[i]) {
        std::vector<std::int64_t> sizes = tensor.sizes().vec();
        sizes.insert(sizes.begin(), sizes_[i]);
        tensor = tensor.unsqueeze(0).expand(sizes);
      } else {
        tensor = batched->value().movedim(batched->bdim(), 0);
      }
    }
    return tensor;
  }

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> levels_;
};

// Runs a subgraph for every element of `scores`. Its inputs: elements, the indices, more elements,
// buffers.
at::Tensor for_every_score(const Value& subgraph, const RunSubgraph& run, const at::Tensor& scores,
                           bool takes_score, const std::optional<at::Tensor>& gradient,
                           const std::vector<Value>& buffers) {
  const Levels levels(scores.sizes());
  std::vector<Value> inputs;
  if (takes_score) inputs.push_back(levels.element(scores));
  const auto options = at::TensorOptions(scores.device()).dtype(at::kLong);
  for (std::size_t i = 0; i < kIndices; ++i) inputs.push_back(levels.index(i, options));
  if (gradient) inputs.push_back(levels.element(*gradient));
  inputs.insert(inputs.end(), buffers.begin(), buffers.end());
  const Value result = run(subgraph, std::move(inputs));
  // The gradient of the score is the first of the joint graph's results.
  const Value first = result.is_tensor() ? result : unpack(result).at(0);
  if (!first.is_tensor()) throw UserError("a score must be a tensor, not " + type_name(first));
  if (gradient) {
    const std::vector<Value> all = unpack(result);
    const auto is_given = [](const Value& value) { return !value.is_none(); };
    if (std::any_of(all.begin() + 1, all.end(), is_given)) {
      throw UserError(
          "gradients of tensors that flex_attention's score function captures need a "
          "Python process",
          "--stack torch runs the file with stock PyTorch");
    }
  }
  return levels.all(first.leaf.toTensor());
}

at::Tensor filled(double value, const at::Tensor& like) {
  return at::scalar_tensor(value, like.options());
}

// Key or value as all query heads and batches see it.
at::Tensor spread(const at::Tensor& tensor, const at::Tensor& query) {
  if (tensor.size(0) != query.size(0) && tensor.size(0) != 1) {
    throw UserError("query has a batch of " + std::to_string(query.size(0)) + ", key and value " +
                    std::to_string(tensor.size(0)));
  }
  const at::Tensor repeated = tensor.repeat_interleave(query.size(1) / tensor.size(1), 1);
  std::vector<std::int64_t> sizes = repeated.sizes().vec();
  sizes[0] = query.size(0);
  return repeated.expand(sizes);
}

struct Scores {
  at::Tensor before;  // as the products of query and key give them
  at::Tensor after;
  at::Tensor mask;  // undefined if nothing is masked
};

Scores scores_of(const at::Tensor& query, const at::Tensor& key, const Value& score_mod,
                 const Value& mask_mod, double scale, const std::vector<Value>& score_buffers,
                 const std::vector<Value>& mask_buffers, const RunSubgraph& run) {
  const at::ScalarType precision = query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor products = at::matmul(query.to(precision), key.to(precision).transpose(-2, -1));
  Scores scores;
  scores.before = (products * scale).to(precision);
  scores.after = for_every_score(score_mod, run, scores.before, true, {}, score_buffers);
  if (is_subgraph(mask_mod)) {
    scores.mask = for_every_score(mask_mod, run, scores.before, false, {}, mask_buffers);
    scores.after = at::where(scores.mask, scores.after, filled(kMinusInfinity, scores.before));
  }
  return scores;
}

// A copy whose dimensions lie in memory in the order of `like`'s, the last one innermost.
at::Tensor laid_out_as(const at::Tensor& tensor, const at::Tensor& like) {
  std::vector<std::size_t> order(static_cast<std::size_t>(like.dim()));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t dim) { return like.strides()[dim]; });
  const std::size_t last = order.size() - 1;
  const auto fill = [&] {
    std::vector<std::int64_t> strides(order.size());
    std::int64_t stride = 1;
    for (const std::size_t dim : order) {
      strides[dim] = stride;
      stride *= tensor.sizes()[dim];
    }
    return strides;
  };
  std::vector<std::int64_t> strides = fill();
  if (strides[last] != 1) {
    std::erase(order, last);
    order.insert(order.begin(), last);
    strides = fill();
  }
  return at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
}

// block_mask's last item is the function; before PyTorch 2.5 there was none.
Value mask_of(const Value& block_mask) {
  if (block_mask.is_none()) return {};
  const std::vector<Value> items = unpack(block_mask);
  return items.empty() || !is_subgraph(items.back()) ? Value() : items.back();
}

double scale_at(const std::vector<Value>& arguments, std::size_t at) {
  const Value& scale = arguments[at];
  if (!scale.is_number()) {
    throw UserError("flex_attention's scale must be a number, not " + type_name(scale));
  }
  return scale.leaf.toScalar().toDouble();
}

Value tuple(std::vector<at::Tensor> tensors) {
  std::vector<Value> values;
  for (at::Tensor& tensor : tensors) values.emplace_back(c10::IValue(std::move(tensor)));
  return Value::sequence(Value::Kind::tuple, std::move(values));
}

}  // namespace

Value flex_attention(const std::vector<Value>& arguments, const RunSubgraph& run) {
  if (arguments.size() < 6 || !is_subgraph(arguments[3])) {
    throw UserError("flex_attention takes query, key, value, a subgraph, a block mask and a scale");
  }
  const at::Tensor query = tensor_at(arguments, 0);
  const at::Tensor key = spread(tensor_at(arguments, 1), query);
  const at::Tensor value = spread(tensor_at(arguments, 2), query);
  const Scores scores =
      scores_of(query, key, arguments[3], mask_of(arguments[4]), scale_at(arguments, 5),
                items_at(arguments, 7), items_at(arguments, 8), run);
  const at::Tensor masked = (scores.after == kMinusInfinity).all(-1);
  const at::Tensor sums = scores.after.logsumexp(-1);
  const at::Tensor output = at::matmul(at::_safe_softmax(scores.after, -1).to(query.scalar_type()),
                                       value.to(query.scalar_type()));
  return tuple({laid_out_as(output, query),
                at::where(masked, filled(kMinusInfinity, sums), sums) / std::numbers::ln2,
                std::get<0>(scores.after.max(-1)) / std::numbers::ln2});
}

Value flex_attention_backward(const std::vector<Value>& arguments, const RunSubgraph& run) {
  if (arguments.size() < 12 || !is_subgraph(arguments[7]) || !is_subgraph(arguments[8])) {
    throw UserError(
        "flex_attention_backward takes seven tensors, two subgraphs, a block mask, a "
        "scale and options");
  }
  const at::Tensor query = tensor_at(arguments, 0);
  const at::Tensor key_given = tensor_at(arguments, 1);
  const at::Tensor value_given = tensor_at(arguments, 2);
  const at::Tensor key = spread(key_given, query);
  const at::Tensor value = spread(value_given, query);
  const at::Tensor out = tensor_at(arguments, 3);
  const at::Tensor log_sums = tensor_at(arguments, 4) * std::numbers::ln2;
  const at::Tensor grad_out =
      arguments[5].is_none() ? at::zeros_like(out) : tensor_at(arguments, 5);
  const at::Tensor grad_log_sums =
      arguments[6].is_none() ? at::zeros_like(log_sums) : tensor_at(arguments, 6);
  const double scale = scale_at(arguments, 10);
  const std::vector<Value> score_buffers = items_at(arguments, 12);
  const Scores scores = scores_of(query, key, arguments[7], mask_of(arguments[9]), scale,
                                  score_buffers, items_at(arguments, 13), run);

  const at::Tensor is_masked_row = (log_sums == kMinusInfinity).unsqueeze(-1);
  at::Tensor weights = (scores.after - log_sums.unsqueeze(-1)).exp();
  weights = at::where(is_masked_row, filled(0, weights), weights);
  const auto precise = [&](const at::Tensor& tensor) { return tensor.to(weights.scalar_type()); };
  at::Tensor grad_value = at::matmul(weights.to(query.scalar_type()).transpose(-2, -1), grad_out);
  const at::Tensor grad_weights = at::matmul(precise(grad_out), precise(value).transpose(-2, -1));
  const at::Tensor sums = (precise(out) * precise(grad_out)).sum(-1, /*keepdim=*/true);
  const at::Tensor grad_after =
      weights * (grad_weights - sums + (grad_log_sums / std::numbers::ln2).unsqueeze(-1));
  at::Tensor grad_scores =
      for_every_score(arguments[8], run, scores.before, true, grad_after, score_buffers);
  grad_scores = (grad_scores * scale).to(query.scalar_type());
  if (scores.mask.defined()) {
    grad_scores = at::where(scores.mask, grad_scores, filled(0, grad_scores));
  }
  // Heads and batches that share a key add up.
  const auto reduced = [&](const at::Tensor& gradient, const at::Tensor& given) {
    const at::Tensor grouped =
        gradient.view({gradient.size(0), given.size(1), -1, gradient.size(-2), gradient.size(-1)});
    const at::Tensor by_head = laid_out_as(grouped.sum(2), given);
    return given.size(0) == query.size(0) ? by_head : by_head.sum(0, /*keepdim=*/true);
  };
  const at::Tensor grad_query = laid_out_as(at::matmul(grad_scores, key), query);
  const at::Tensor grad_key = at::matmul(grad_scores.transpose(-2, -1), query);
  const Value none_of_buffers =
      Value::sequence(Value::Kind::tuple, std::vector<Value>(score_buffers.size()));
  std::vector<Value> results =
      unpack(tuple({grad_query, reduced(grad_key, key_given), reduced(grad_value, value_given)}));
  results.push_back(none_of_buffers);
  return Value::sequence(Value::Kind::tuple, std::move(results));
}

}  // namespace assay::aten
