// torch.ops.prims.*: operators that PyTorch defines in Python, so that a C++ process has none of
// them. What stands here is what they do when stock PyTorch runs them eagerly.
#include <c10/core/GradMode.h>

#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/prims_pooling.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// A copy in another dtype, always new, with the strides of the original where they are dense.
Value convert_element_type(const BoundArguments& arguments) {
  const at::Tensor a = arguments.tensor("a");
  const c10::AutoGradMode no_grad(false);
  const at::Tensor result =
      run_tensor("aten::empty_like", {a}, {{"dtype", arguments["dtype"]}, {"device", a.device()}});
  return Operand(result.copy_(a)).value;
}

Value iota(const BoundArguments& arguments) {
  const std::int64_t start = arguments.integer("start");
  const std::int64_t step = arguments.integer("step");
  if (step == 0) throw UserError("step must be nonzero");
  std::int64_t end = 0;
  if (__builtin_mul_overflow(arguments.integer("length"), step, &end) ||
      __builtin_add_overflow(start, end, &end)) {
    throw UserError("the end of this range does not fit in 64 bits");
  }
  return run("aten::arange", {start, end, step},
             {{"dtype", arguments["dtype"]}, {"device", arguments["device"]}});
}

// Eager rounds twice; only compiled kernels fuse the two.
Value multiply_add(const BoundArguments& arguments) {
  const at::Tensor product = run_tensor(
      "aten::mul", {tensor_or_wrapped(arguments["a"]), tensor_or_wrapped(arguments["b"])});
  return run("aten::add", {product, tensor_or_wrapped(arguments["c"])});
}

Value device_put(const BoundArguments& arguments) {
  return run("aten::to", {arguments["a"]},
             {{"device", arguments["device"]}, {"non_blocking", arguments["non_blocking"]}});
}

Value force_stride_order(const BoundArguments& arguments) {
  const at::Tensor input = arguments.tensor("input");
  const std::vector<std::int64_t> stride = integers_of(arguments["stride"]);
  if (input.strides() == at::IntArrayRef(stride)) return arguments["input"];
  const at::Tensor result = input.clone().as_strided(input.sizes(), stride);
  result.copy_(input);
  return Operand(result).value;
}

Value prepare_softmax_online(const BoundArguments& arguments) {
  const at::Tensor a = arguments.tensor("a");
  const std::int64_t dim = arguments.integer("dim");
  const at::Tensor largest = a.amax(dim, true);
  return tuple_of({Operand(largest).value, Operand(a.sub(largest).exp().sum(dim, true)).value});
}

Value broadcast_in_dim(const BoundArguments& arguments) {
  at::Tensor view = arguments.tensor("a");
  const std::vector<std::int64_t> shape = integers_of(arguments["shape"]);
  std::vector<bool> is_kept(shape.size(), false);
  for (const std::int64_t dim : integers_of(arguments["broadcast_dimensions"])) {
    if (dim < 0 || dim >= static_cast<std::int64_t>(shape.size())) {
      throw UserError("broadcast_in_dim: a dimension is out of range");
    }
    is_kept[static_cast<std::size_t>(dim)] = true;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!is_kept[i]) view = view.unsqueeze(static_cast<std::int64_t>(i));
  }
  return Operand(view.expand(shape)).value;
}

// Truncates for integers.
Value divide(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  const Operand other = tensor_or_wrapped(arguments["other"]);
  if (!c10::isIntegralType(self.scalar_type(), true)) return run("aten::div", {self, other});
  return run("aten::div", {self, other}, {{"rounding_mode", "trunc"}});
}

Value view_of(const BoundArguments& arguments) {
  const at::Tensor a = arguments.tensor("a");
  return Operand(a.view(a.sizes())).value;
}

Value reshape(const BoundArguments& arguments) {
  return Operand(arguments.tensor("a")
                     .reshape(integers_of(arguments["shape"]))
                     .clone(at::MemoryFormat::Contiguous))
      .value;
}

template <const char* op>
Value unary(const BoundArguments& arguments) {
  return run(op, {arguments["self"]});
}

template <const char* op>
Value binary(const BoundArguments& arguments) {
  return run(op, {tensor_or_wrapped(arguments["self"]), tensor_or_wrapped(arguments["other"])});
}

constexpr char kAbs[] = "aten::abs";
constexpr char kCos[] = "aten::cos";
constexpr char kErf[] = "aten::erf";
constexpr char kExp[] = "aten::exp";
constexpr char kLog[] = "aten::log";
constexpr char kNeg[] = "aten::neg";
constexpr char kReciprocal[] = "aten::reciprocal";
constexpr char kRsqrt[] = "aten::rsqrt";
constexpr char kSign[] = "aten::sign";
constexpr char kSin[] = "aten::sin";
constexpr char kSqrt[] = "aten::sqrt";
constexpr char kTanh[] = "aten::tanh";
constexpr char kAdd[] = "aten::add";
constexpr char kSub[] = "aten::sub";
constexpr char kMul[] = "aten::mul";
constexpr char kEq[] = "aten::eq";
constexpr char kNe[] = "aten::ne";
constexpr char kLt[] = "aten::lt";
constexpr char kLe[] = "aten::le";
constexpr char kGt[] = "aten::gt";
constexpr char kGe[] = "aten::ge";

constexpr std::array kPrimFunctions = std::to_array<TorchFunction>({
    {"torch.ops.prims.convert_element_type.default", "a, dtype", convert_element_type},
    {"torch.ops.prims.iota.default", "length, *, start, step, dtype, device, requires_grad", iota},
    {"torch.ops.prims.fma.default", "a, b, c", multiply_add},
    {"torch.ops.prims.device_put.default", "a, device, non_blocking=False", device_put},
    {"torch.ops.prims.inductor_force_stride_order.default", "input, stride", force_stride_order},
    {"torch.ops.prims.prepare_softmax_online.default", "a, dim", prepare_softmax_online},
    {"torch.ops.prims._low_memory_max_pool_with_offsets.default",
     "self, kernel_size, stride, padding, dilation, ceil_mode", max_pool_with_offsets},
    {"torch.ops.prims._low_memory_max_pool_offsets_to_indices.default",
     "self, kernel_size, input_size, stride, padding, dilation", max_pool_offsets_to_indices},
    // What the two above were called before PyTorch 2.7, for two dimensions.
    {"torch.ops.prims._low_memory_max_pool2d_with_offsets.default",
     "self, kernel_size, stride, padding, dilation, ceil_mode", max_pool_with_offsets},
    {"torch.ops.prims._low_memory_max_pool2d_offsets_to_indices.default",
     "self, kernel_width, input_width, stride, padding", max_pool2d_offsets_to_indices},
    {"torch.ops.prims.broadcast_in_dim.default", "a, shape, broadcast_dimensions",
     broadcast_in_dim},
    {"torch.ops.prims.view_of.default", "a", view_of},
    {"torch.ops.prims.reshape.default", "a, shape", reshape},
    {"torch.ops.prims.transpose.default", "a, permutation",
     [](const BoundArguments& arguments) {
       return run("aten::permute", {arguments["a"], arguments["permutation"]});
     }},
    {"torch.ops.prims.rev.default", "a, dims",
     [](const BoundArguments& arguments) {
       return run("aten::flip", {arguments["a"], arguments["dims"]});
     }},
    // Orders calls with effects, which a list of steps does already.
    {"torch.ops.prims._make_token.default", "",
     [](const BoundArguments&) { return run("aten::empty", {std::vector<std::int64_t>{0}}); }},
    {"torch.ops.prims._sink_tokens.default", "tokens",
     [](const BoundArguments&) { return Value(); }},
    {"torch.ops.prims.cat.default", "tensors, dim",
     [](const BoundArguments& arguments) {
       return run("aten::cat", {arguments["tensors"], arguments["dim"]});
     }},
    {"torch.ops.prims.where.default", "pred, a, b",
     [](const BoundArguments& arguments) {
       return run("aten::where", {arguments["pred"], arguments["a"], arguments["b"]});
     }},
    {"torch.ops.prims._unsafe_index_put_.default", "self, indices, values, accumulate=False",
     [](const BoundArguments& arguments) {
       return run("aten::index_put_", {arguments["self"], arguments["indices"], arguments["values"],
                                       arguments["accumulate"]});
     }},
    {"torch.ops.prims.div.default", "self, other", divide},
    {"torch.ops.prims.add.default", "self, other", binary<kAdd>},
    {"torch.ops.prims.sub.default", "self, other", binary<kSub>},
    {"torch.ops.prims.mul.default", "self, other", binary<kMul>},
    {"torch.ops.prims.eq.default", "self, other", binary<kEq>},
    {"torch.ops.prims.ne.default", "self, other", binary<kNe>},
    {"torch.ops.prims.lt.default", "self, other", binary<kLt>},
    {"torch.ops.prims.le.default", "self, other", binary<kLe>},
    {"torch.ops.prims.gt.default", "self, other", binary<kGt>},
    {"torch.ops.prims.ge.default", "self, other", binary<kGe>},
    {"torch.ops.prims.abs.default", "self", unary<kAbs>},
    {"torch.ops.prims.cos.default", "self", unary<kCos>},
    {"torch.ops.prims.erf.default", "self", unary<kErf>},
    {"torch.ops.prims.exp.default", "self", unary<kExp>},
    {"torch.ops.prims.log.default", "self", unary<kLog>},
    {"torch.ops.prims.neg.default", "self", unary<kNeg>},
    {"torch.ops.prims.reciprocal.default", "self", unary<kReciprocal>},
    {"torch.ops.prims.rsqrt.default", "self", unary<kRsqrt>},
    {"torch.ops.prims.sign.default", "self", unary<kSign>},
    {"torch.ops.prims.sin.default", "self", unary<kSin>},
    {"torch.ops.prims.sqrt.default", "self", unary<kSqrt>},
    {"torch.ops.prims.tanh.default", "self", unary<kTanh>},
});

}  // namespace

FunctionTable prim_functions() { return kPrimFunctions; }

}  // namespace assay::aten
