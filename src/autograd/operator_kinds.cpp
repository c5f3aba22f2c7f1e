#include "autograd/operator_kinds.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "aten/facts.h"
#include "aten/operators.h"

namespace assay::autograd {

using graph::Node;
using graph::Op;

namespace {

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Declared as views, but they copy where a view is impossible.
constexpr std::string_view kMaybeCopies[] = {"contiguous",   "flatten",     "pin_memory",
                                             "ravel",        "reshape",     "reshape_as",
                                             "resolve_conj", "resolve_neg", "to"};

// Not declared as views, but they share memory all the same.
constexpr std::string_view kUndeclaredViews[] = {"_unsafe_view"};

// Pointwise, a fill or a copy, without PyTorch's tag saying so; and questions about sizes.
constexpr std::string_view kUntaggedPointwise[] = {"__and__",
                                                   "__or__",
                                                   "_local_scalar_dense",
                                                   "_to_copy",
                                                   "arange",
                                                   "broadcast_tensors",
                                                   "empty",
                                                   "empty_like",
                                                   "empty_strided",
                                                   "eye",
                                                   "full",
                                                   "full_like",
                                                   "lift",
                                                   "lift_fresh_copy",
                                                   "linspace",
                                                   "new_empty",
                                                   "new_full",
                                                   "new_ones",
                                                   "new_zeros",
                                                   "ones",
                                                   "ones_like",
                                                   "scalar_tensor",
                                                   "sym_numel",
                                                   "sym_size",
                                                   "sym_storage_offset",
                                                   "sym_stride",
                                                   "tril",
                                                   "triu",
                                                   "type_as",
                                                   "zeros",
                                                   "zeros_like"};
constexpr std::string_view kGathers[] = {"embedding", "gather", "index", "index_select"};
constexpr std::string_view kUntaggedReductions[] = {"_grad_sum_to_size", "sum_to_size", "trace"};

// PyTorch defines prims in Python: the dispatcher of a C++ process knows nothing about them.
constexpr std::string_view kPrimsViews[] = {
    "as_strided", "broadcast_in_dim", "collapse_view", "conj",      "imag",   "real",
    "slice",      "split_dim",        "squeeze",       "transpose", "view_of"};
constexpr std::string_view kPrimsReductions[] = {
    "all", "amax", "amin", "any", "prepare_softmax_online", "prod", "sum", "var", "xor_sum"};
constexpr std::string_view kPrimsRandom[] = {"inductor_rand", "inductor_randint", "inductor_random",
                                             "inductor_seed", "inductor_seeds",   "philox_rand"};
constexpr std::string_view kPrimsExpensive[] = {"_low_memory_max_pool_with_offsets", "convolution",
                                                "fft_c2c", "fft_r2c", "svd"};

OperatorKind kind_of_prims(std::string_view name) {
  if (is_in(kPrimsViews, name)) return OperatorKind::view;
  if (is_in(kPrimsReductions, name)) return OperatorKind::reduction;
  if (is_in(kPrimsRandom, name)) return OperatorKind::random;
  if (is_in(kPrimsExpensive, name)) return OperatorKind::expensive;
  if (name == "cat") return OperatorKind::join;
  return name.ends_with('_') ? OperatorKind::effect : OperatorKind::pointwise;
}

bool is_declared_view(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return !returns.empty() && returns[0].alias_info() != nullptr &&
         !returns[0].alias_info()->isWrite();
}

OperatorKind kind_of_operator(const c10::OperatorHandle& op, std::string_view name) {
  if (op.hasTag(at::Tag::nondeterministic_seeded)) return OperatorKind::random;
  if (!aten::is_pure_operator(op)) return OperatorKind::effect;
  if (is_in(kMaybeCopies, name)) return OperatorKind::pointwise;
  if (is_declared_view(op.schema()) || is_in(kUndeclaredViews, name)) return OperatorKind::view;
  if (is_in(kGathers, name)) return OperatorKind::gather;
  if (name == "cat") return OperatorKind::join;
  // Before pointwise: aten::max is a reduction with one argument and pointwise with two.
  if (op.hasTag(at::Tag::reduction) || is_in(kUntaggedReductions, name)) {
    return OperatorKind::reduction;
  }
  if (op.hasTag(at::Tag::pointwise) || is_in(kUntaggedPointwise, name)) {
    return OperatorKind::pointwise;
  }
  return OperatorKind::expensive;
}

}  // namespace

OperatorKind kind_of(const Node& node) {
  if (!node.is_call()) return OperatorKind::view;
  if (node.op() != Op::call_function) return OperatorKind::effect;
  if (node.calls("operator.getitem")) {
    const Node* source = node.args().empty() ? nullptr : node.args()[0].node();
    const bool is_of_views =
        source != nullptr && source->is_call() && kind_of(*source) == OperatorKind::view;
    return is_of_views ? OperatorKind::view : OperatorKind::item;
  }
  if (const auto op = aten::find_operator(node.target())) {
    return kind_of_operator(*op, node.target().base_name());
  }
  if (node.target().name().starts_with("torch.ops.prims.")) {
    return kind_of_prims(node.target().base_name());
  }
  // Python's arithmetic on integers.
  return aten::is_pure(node) ? OperatorKind::pointwise : OperatorKind::effect;
}

bool must_run(const Node& node) {
  const OperatorKind kind = kind_of(node);
  return kind == OperatorKind::random || kind == OperatorKind::effect;
}

bool fuses_with_inputs(const Node& node) {
  const OperatorKind kind = kind_of(node);
  return kind != OperatorKind::expensive && kind != OperatorKind::effect;
}

bool gives_one_tensor(const Node& node) {
  if (node.op() != Op::call_function) return node.op() == Op::placeholder;
  const auto op = aten::find_operator(node.target());
  if (!op) return false;
  const auto& returns = op->schema().returns();
  return returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::TensorType;
}

}  // namespace assay::autograd
