// The functions of torch/functional.py, which are Python around an operator, and the tensor methods
// that call them.
#include <algorithm>
#include <array>

#include "aten/functions/forwarded.h"
#include "aten/functions/operand.h"
#include "aten/functions/python_numbers.h"
#include "aten/functions/tables.h"
#include "aten/functions/tensor_from_data.h"

namespace assay::aten {

namespace {

bool is_integer(const Value& value) { return value.is_int() || value.is_bool(); }

// What `f(a, b)` and `f([a, b])` both mean.
Value one_list(const Value& given) {
  const std::vector<Value> items = unpack(given);
  if (items.size() == 1 && holds_sequence(items.front())) return items.front();
  return list_of(items);
}

template <const char* size_parameter>
Value split(const BoundArguments& arguments) {
  const Value& size = arguments[size_parameter];
  if (size.is_tensor()) throw NeedsPythonError("split() by a tensor needs a Python process");
  const char* op = is_integer(size) ? "aten::split" : "aten::split_with_sizes";
  return run(op, {arguments["tensor"], size, arguments["dim"]});
}

// The letter for a number in einsum's form without an equation.
std::string subscript(const Value& value) {
  if (value.kind == Value::Kind::ellipsis) return "...";
  const std::int64_t number = value.is_int() ? value.leaf.toInt() : -1;
  if (number >= 0 && number < 26) return std::string(1, static_cast<char>('A' + number));
  if (number >= 26 && number < 52) return std::string(1, static_cast<char>('a' + number - 26));
  throw UserError("einsum(): subscript in subscript list is not within the valid range [0, 52)");
}

std::string subscripts(const Value& list) {
  std::string text;
  for (const Value& item : unpack(list)) text += subscript(item);
  return text;
}

// With opt_einsum installed Python picks another order for more than two operands, which rounds
// differently; without it, as here, the operands are contracted from left to right.
Value einsum(const BoundArguments& arguments) {
  std::vector<Value> given = unpack(arguments["args"]);
  if (given.size() < 2) {
    throw UserError(
        "einsum(): must specify the equation string and at least one operand, or at least one "
        "operand and its subscripts list");
  }
  if (given[0].is_string()) {
    const Value operands = tuple_of({given.begin() + 1, given.end()});
    return run("aten::einsum", {given[0], one_list(operands)});
  }
  std::string equation;
  std::vector<Value> operands;
  for (std::size_t i = 0; i + 1 < given.size(); i += 2) {
    operands.push_back(given[i]);
    equation += (i > 0 ? "," : "") + subscripts(given[i + 1]);
  }
  if (given.size() % 2 == 1) equation += "->" + subscripts(given.back());
  return run("aten::einsum", {equation.c_str(), list_of(std::move(operands))});
}

Value meshgrid(const BoundArguments& arguments) {
  const Value tensors = one_list(arguments["tensors"]);
  if (arguments["indexing"].is_none()) return run("aten::meshgrid", {tensors});
  return run("aten::meshgrid", {tensors}, {{"indexing", arguments["indexing"]}});
}

std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

Value tensordot(const BoundArguments& arguments) {
  const at::Tensor a = arguments.tensor("a");
  const at::Tensor b = arguments.tensor("b");
  const Value& dims = arguments["dims"];
  Operand first = std::nullopt;
  Operand second = std::nullopt;
  if (is_integer(dims)) {
    const std::int64_t count = arguments.integer("dims");
    if (count < 0) throw UserError("tensordot expects dims >= 0");
    if (count > std::min(a.dim(), b.dim()))
      throw UserError("tensordot expects dims < ndim_a or ndim_b");
    first = range(-count, 0);
    second = range(0, count);
  } else if (holds_sequence(dims)) {
    const std::vector<Value> pair = unpack(dims);
    if (pair.size() != 2) throw UserError("tensordot expects two lists of dims");
    first = pair[0];
    second = pair[1];
  } else {
    throw NeedsPythonError("tensordot with dims of type " + type_name(dims) +
                           " needs a Python process");
  }
  if (arguments["out"].is_none()) return run("aten::tensordot", {a, b, first, second});
  return run("aten::tensordot", {a, b, first, second}, {{"out", arguments["out"]}});
}

Value cdist(const BoundArguments& arguments) {
  const std::string mode = arguments.text("compute_mode");
  Operand number = std::nullopt;
  if (mode == "use_mm_for_euclid_dist") {
    number = 1;
  } else if (mode == "donot_use_mm_for_euclid_dist") {
    number = 2;
  } else if (mode != "use_mm_for_euclid_dist_if_necessary") {
    throw UserError(mode + " is not a valid value for compute_mode");
  }
  return run("aten::cdist", {arguments["x1"], arguments["x2"], arguments["p"], number});
}

template <const char* op>
Value run_with_list(const BoundArguments& arguments) {
  return run(op, {arguments["tensors"]});
}

// One tensor gives a tensor, several a tuple of them.
template <const char* op>
Value run_at_least(const BoundArguments& arguments) {
  const std::vector<Value> tensors = unpack(arguments["tensors"]);
  return tensors.size() == 1 ? run(op, {tensors.front()}) : run(op, {arguments["tensors"]});
}

Value norm(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("input");
  if (self.layout() != at::kStrided)
    throw NeedsPythonError("the norm of a sparse tensor needs a Python process");
  const Value& p = arguments["p"];
  const Value& dim = arguments["dim"];
  const Operand dims = is_integer(dim) ? Operand(list_of({dim})) : Operand(dim);
  const Value& keepdim = arguments["keepdim"];
  const Value& dtype = arguments["dtype"];
  if (!arguments["out"].is_none())
    throw NeedsPythonError("norm() with out= needs a Python process");
  if (!p.is_string()) {
    const Operand order = p.is_none() ? Operand(2.0) : Operand(p);
    return run("aten::linalg_vector_norm", {self, order, dims, keepdim}, {{"dtype", dtype}});
  }
  const bool few_dims = !holds_sequence(dim) || unpack(dim).size() <= 2;
  if (p.leaf.toStringRef() == "fro" && few_dims) {
    return run("aten::linalg_vector_norm", {self, 2, dims, keepdim}, {{"dtype", dtype}});
  }
  const Operand all = dim.is_none() ? Operand(range(0, self.dim())) : dims;
  return run("aten::linalg_matrix_norm", {self, p, all, keepdim}, {{"dtype", dtype}});
}

Value stft(const BoundArguments& arguments) {
  at::Tensor input = arguments.tensor("input");
  const std::int64_t n_fft = arguments.integer("n_fft");
  if (arguments.truth("center")) {
    if (!arguments["align_to_window"].is_none()) {
      throw UserError("stft align_to_window should only be set when center = false");
    }
    // Padding by reflection wants three dimensions.
    const std::int64_t signal_dims = input.dim();
    std::vector<std::int64_t> extended(
        static_cast<std::size_t>(std::max<std::int64_t>(3 - signal_dims, 0)), 1);
    extended.insert(extended.end(), input.sizes().begin(), input.sizes().end());
    const std::vector<std::int64_t> padding(2, n_fft / 2);
    input = run_tensor("aten::pad", {input.view(extended), padding, arguments["pad_mode"]});
    input = input.view(input.sizes().slice(static_cast<std::size_t>(input.dim() - signal_dims)));
  }
  return run("aten::stft", {input, n_fft, arguments["hop_length"], arguments["win_length"],
                            arguments["window"], arguments["normalized"], arguments["onesided"],
                            arguments["return_complex"], arguments["align_to_window"]});
}

Value broadcast_shapes(const BoundArguments& arguments) {
  std::vector<std::int64_t> result;
  for (const Value& shape : unpack(arguments["shapes"])) {
    const std::vector<std::int64_t> sizes = repeat_to(shape, 1);
    if (sizes.size() > result.size())
      result.insert(result.begin(), sizes.size() - result.size(), 1);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::int64_t& kept = result[result.size() - sizes.size() + i];
      if (kept == 1) {
        kept = sizes[i];
      } else if (sizes[i] != 1 && sizes[i] != kept) {
        throw UserError("Shape mismatch: objects cannot be broadcast to a single shape");
      }
    }
  }
  Value value = Operand(result).value;
  value.kind = Value::Kind::tuple;
  return value;
}

// The coordinates of flat positions: divided by the size of what is inside, modulo the dimension.
Value unravel_index(const BoundArguments& arguments) {
  const at::Tensor indices = arguments.tensor("indices");
  if (!c10::isIntegralType(indices.scalar_type(), false)) {
    throw UserError("expected 'indices' to be integer dtype");
  }
  const std::vector<std::int64_t> shape = repeat_to(arguments["shape"], 1);
  std::vector<std::int64_t> inner(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) inner[i - 1] = multiply_sizes(inner[i], shape[i]);
  if (std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; })) {
    throw UserError("'shape' cannot have negative values");
  }
  const auto as_tensor = [&](const std::vector<std::int64_t>& numbers) {
    return tensor_from_data(Operand(numbers).value, at::kLong).to(indices.device());
  };
  const at::Tensor all =
      indices.unsqueeze(-1).floor_divide(as_tensor(inner)).remainder(as_tensor(shape));
  std::vector<Value> coordinates;
  for (const at::Tensor& coordinate : all.unbind(-1)) {
    coordinates.push_back(Operand(coordinate).value);
  }
  return tuple_of(std::move(coordinates));
}

Value nonzero(const BoundArguments& arguments) {
  if (arguments.truth("as_tuple")) return run("aten::nonzero_numpy", {arguments["input"]});
  if (arguments["out"].is_none()) return run("aten::nonzero", {arguments["input"]});
  return run("aten::nonzero", {arguments["input"]}, {{"out", arguments["out"]}});
}

constexpr char kSize[] = "split_size";
constexpr char kSizeOrSections[] = "split_size_or_sections";
constexpr char kBroadcastTensors[] = "aten::broadcast_tensors";
constexpr char kCartesianProd[] = "aten::cartesian_prod";
constexpr char kBlockDiag[] = "aten::block_diag";
constexpr char kChainMatmul[] = "aten::chain_matmul";
constexpr char kAtLeast1d[] = "aten::atleast_1d";
constexpr char kAtLeast2d[] = "aten::atleast_2d";
constexpr char kAtLeast3d[] = "aten::atleast_3d";

constexpr std::string_view kStftParameters =
    "input, n_fft, hop_length=None, win_length=None, window=None, center=True, "
    "pad_mode='reflect', normalized=False, onesided=None, return_complex=None, "
    "align_to_window=None";

constexpr std::array kTorchPythonFunctions = std::to_array<TorchFunction>({
    {"torch.split", "tensor, split_size_or_sections, dim=0", split<kSizeOrSections>},
    {"torch.einsum", "*args", einsum},
    {"torch.meshgrid", "*tensors, indexing=None", meshgrid},
    {"torch.tensordot", "a, b, dims=2, out=None", tensordot},
    {"torch.cdist", "x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary'", cdist},
    {"torch.broadcast_tensors", "*tensors", run_with_list<kBroadcastTensors>},
    {"torch.broadcast_shapes", "*shapes", broadcast_shapes},
    {"torch.cartesian_prod", "*tensors", run_with_list<kCartesianProd>},
    {"torch.block_diag", "*tensors", run_with_list<kBlockDiag>},
    {"torch.chain_matmul", "*tensors", run_with_list<kChainMatmul>},
    {"torch.atleast_1d", "*tensors", run_at_least<kAtLeast1d>},
    {"torch.atleast_2d", "*tensors", run_at_least<kAtLeast2d>},
    {"torch.atleast_3d", "*tensors", run_at_least<kAtLeast3d>},
    {"torch.norm", "input, p='fro', dim=None, keepdim=False, out=None, dtype=None", norm},
    {"torch.stft", kStftParameters, stft},
    {"torch.nonzero", "input, *, as_tuple=False, out=None", nonzero},
    {"torch.unravel_index", "indices, shape", unravel_index},
    {"torch.numel", "input",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(arguments.tensor("input").numel());
     }},
});

constexpr std::array kTorchPythonMethods = std::to_array<TorchFunction>({
    {"split", "tensor, split_size, dim=0", split<kSize>},
    {"norm", "input, p='fro', dim=None, keepdim=False, dtype=None, *, out=None", norm},
    {"stft", kStftParameters, stft},
    {"istft", kEverything,
     [](const BoundArguments& arguments) { return forward_to("aten::istft", arguments); }},
});

}  // namespace

FunctionTable torch_python_functions() { return kTorchPythonFunctions; }
FunctionTable torch_python_methods() { return kTorchPythonMethods; }

}  // namespace assay::aten
