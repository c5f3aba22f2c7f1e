#include "graph/tensor_syntax.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "graph/annotation.h"
#include "graph/device_names.h"
#include "graph/dtype_names.h"
#include "graph/parse.h"

namespace assay::graph {

namespace {

using python::Expression;
using python::Source;
using Fill = TensorAttribute::Fill;
using Kind = Expression::Kind;

// Larger sequences are not written out element by element.
constexpr std::int64_t kMaxArange = 100'000;

UserError tensor_error(const Source& source, const Expression& at, const std::string& message) {
  return source.error(at.offset, at.end - at.offset, message);
}

const Expression* keyword_of(const Expression& call, std::string_view name) {
  for (const auto& candidate : call.keywords) {
    if (candidate.name == name) return candidate.value;
  }
  return nullptr;
}

// The argument at a position (from 0) or of a name.
const Expression* argument_of(const Expression& call, std::size_t position, std::string_view name) {
  if (position + 1 < call.children.size()) return call.children[position + 1];
  return keyword_of(call, name);
}

bool is_sequence(const Expression& expression) {
  if (expression.kind == Kind::tuple || expression.kind == Kind::list) return true;
  return expression.kind == Kind::call && expression.children.size() == 2 &&
         python::dotted_name(*expression.children[0]) == "torch.Size";
}

// `least` is -1 where that stands for what is left.
SizeExpr size_item(const Source& source, const Expression& expression, std::int64_t least = 0) {
  auto size = size_from_syntax(expression);
  if (!size || (size->constant() && *size->constant() < least)) {
    throw tensor_error(source, expression, "expected a size");
  }
  return std::move(*size);
}

std::vector<SizeExpr> size_items(const Source& source, const Expression& expression,
                                 std::int64_t least = 0) {
  if (expression.kind == Kind::call && is_sequence(expression)) {
    return size_items(source, *expression.children[1], least);
  }
  std::vector<SizeExpr> sizes;
  if (!is_sequence(expression)) {
    sizes.push_back(size_item(source, expression, least));
    return sizes;
  }
  for (const Expression* item : expression.children) {
    sizes.push_back(size_item(source, *item, least));
  }
  return sizes;
}

// `randn([2, 3])`, `randn(2, 3)`, `randn(size=(2, 3))`; from the given position on.
std::vector<SizeExpr> called_sizes(const Source& source, const Expression& call,
                                   std::size_t position, std::int64_t least = 0) {
  if (const Expression* given = keyword_of(call, "size")) return size_items(source, *given, least);
  if (position + 1 >= call.children.size()) return {};
  if (is_sequence(*call.children[position + 1])) {
    return size_items(source, *call.children[position + 1], least);
  }
  std::vector<SizeExpr> sizes;
  for (std::size_t i = position + 1; i < call.children.size(); ++i) {
    sizes.push_back(size_item(source, *call.children[i], least));
  }
  return sizes;
}

std::optional<c10::ScalarType> dtype_named(const Expression& expression) {
  constexpr std::string_view kTorch = "torch.";
  const std::string name = python::dotted_name(expression);
  if (!name.starts_with(kTorch)) return std::nullopt;
  return dtype_from_name(std::string_view(name).substr(kTorch.size()));
}

c10::ScalarType dtype_keyword(const Source& source, const Expression& call,
                              c10::ScalarType fallback) {
  const Expression* given = keyword_of(call, "dtype");
  if (given == nullptr || given->kind == Kind::none) return fallback;
  if (const auto dtype = dtype_named(*given)) return *dtype;
  throw tensor_error(source, *given, "expected a dtype such as torch.float32");
}

c10::Device device_value(const Source& source, const Expression& expression) {
  if (expression.kind == Kind::integer) return c10::Device(c10::DeviceType::CUDA);
  if (expression.kind == Kind::name) return c10::Device(c10::DeviceType::CPU);  // a variable
  const Argument value = constant_from_syntax(source, expression);
  if (const auto* device = value.get_if<c10::Device>()) return *device;
  if (const auto* name = value.get_if<std::string>()) {
    if (const auto device = device_from_name(*name)) return *device;
    throw tensor_error(source, expression, "not a device PyTorch knows");
  }
  throw tensor_error(source, expression, "expected a device");
}

double number_value(const Source& source, const Expression& expression) {
  const Argument value = constant_from_syntax(source, expression);
  if (const auto* number = value.get_if<double>()) return *number;
  if (const auto* number = value.get_if<std::int64_t>()) return static_cast<double>(*number);
  if (const auto* truth = value.get_if<bool>()) return *truth ? 1 : 0;
  throw tensor_error(source, expression, "expected a number");
}

// The dtype torch.tensor() would infer.
c10::ScalarType inferred_dtype(const Argument& values) {
  if (values.get_if<bool>() != nullptr) return c10::ScalarType::Bool;
  if (values.get_if<double>() != nullptr) return c10::ScalarType::Float;
  if (values.get_if<std::complex<double>>() != nullptr) return c10::ScalarType::ComplexFloat;
  const auto& items = values.items();
  if (items.empty() && values.get_if<std::int64_t>() == nullptr) return c10::ScalarType::Float;
  auto dtype = items.empty() ? c10::ScalarType::Long : c10::ScalarType::Bool;
  for (const Argument& item : items) dtype = c10::promoteTypes(dtype, inferred_dtype(item));
  return dtype;
}

// Sizes of nested lists; every list of one level must be equally long.
std::vector<SizeExpr> shape_of(const Source& source, const Expression& at, const Argument& values) {
  if (values.get_if<List>() == nullptr && values.get_if<Tuple>() == nullptr) return {};
  const auto& items = values.items();
  std::vector<SizeExpr> inner;
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto shape = shape_of(source, at, items[i]);
    if (i > 0 && !(shape == inner)) {
      throw tensor_error(source, at, "the lists differ in length");
    }
    inner = std::move(shape);
  }
  inner.insert(inner.begin(), SizeExpr(static_cast<std::int64_t>(items.size())));
  return inner;
}

// ---- the functions that make tensors ----

void fill_sized(const Source& source, const Expression& call, Fill fill, TensorAttribute& made) {
  made.fill = fill;
  made.meta.sizes = called_sizes(source, call, 0);
  made.meta.dtype = dtype_keyword(source, call, c10::ScalarType::Float);
}

void make_randn(const Source& source, const Expression& call, TensorAttribute& made) {
  fill_sized(source, call, Fill::randn, made);
}
void make_rand(const Source& source, const Expression& call, TensorAttribute& made) {
  fill_sized(source, call, Fill::uniform, made);
}
void make_zeros(const Source& source, const Expression& call, TensorAttribute& made) {
  fill_sized(source, call, Fill::zeros, made);
}
void make_ones(const Source& source, const Expression& call, TensorAttribute& made) {
  fill_sized(source, call, Fill::constant, made);
  made.low = 1;
}

void make_full(const Source& source, const Expression& call, TensorAttribute& made) {
  const Expression* sizes = argument_of(call, 0, "size");
  const Expression* value = argument_of(call, 1, "fill_value");
  if (sizes == nullptr || value == nullptr) {
    throw tensor_error(source, call, "expected sizes and a value");
  }
  made.fill = Fill::constant;
  made.meta.sizes = size_items(source, *sizes);
  made.low = number_value(source, *value);
  made.meta.dtype =
      dtype_keyword(source, call, inferred_dtype(constant_from_syntax(source, *value)));
}

// randint(high, size) and randint(low, high, size); stock PyTorch writes randint(1, size=[...]),
// which can only give zeros.
void make_randint(const Source& source, const Expression& call, TensorAttribute& made) {
  const std::size_t given = call.children.size() - 1;
  const bool has_size = keyword_of(call, "size") != nullptr;
  const std::size_t bounds = has_size ? given : given - std::min<std::size_t>(given, 1);
  const Expression* low = keyword_of(call, "low");
  const Expression* high = keyword_of(call, "high");
  if (bounds == 1) (high == nullptr ? high : low) = call.children[1];
  if (bounds == 2) {
    low = call.children[1];
    high = call.children[2];
  }
  if (high == nullptr) throw tensor_error(source, call, "expected an upper bound");
  made.meta.sizes = has_size ? size_items(source, *keyword_of(call, "size"))
                             : size_items(source, *call.children.back());
  made.meta.dtype = dtype_keyword(source, call, c10::ScalarType::Long);
  made.low = low == nullptr ? 0 : number_value(source, *low);
  made.high = number_value(source, *high);
  made.fill = made.low == 0 && made.high == 1 ? Fill::zeros : Fill::uniform;
  if (made.fill == Fill::zeros) made.high = 1;
}

void make_tensor(const Source& source, const Expression& call, TensorAttribute& made) {
  if (call.children.size() < 2) throw tensor_error(source, call, "expected the elements");
  made.fill = Fill::values;
  made.values = constant_from_syntax(source, *call.children[1]);
  made.meta.sizes = shape_of(source, *call.children[1], made.values);
  made.meta.dtype = dtype_keyword(source, call, inferred_dtype(made.values));
  if (const Expression* size = keyword_of(call, "size")) {  // an empty tensor's repr
    made.fill = Fill::zeros;
    made.values = Argument();
    made.meta.sizes = size_items(source, *size);
  }
}

void make_arange(const Source& source, const Expression& call, TensorAttribute& made) {
  std::vector<double> bounds;
  bool is_integral = true;
  for (std::size_t i = 1; i < call.children.size(); ++i) {
    is_integral =
        is_integral && constant_from_syntax(source, *call.children[i]).get_if<double>() == nullptr;
    bounds.push_back(number_value(source, *call.children[i]));
  }
  if (const Expression* end = keyword_of(call, "end")) bounds.push_back(number_value(source, *end));
  if (bounds.empty() || bounds.size() > 3) throw tensor_error(source, call, "expected bounds");
  const double start = bounds.size() == 1 ? 0 : bounds[0];
  const double end = bounds.size() == 1 ? bounds[0] : bounds[1];
  const double step = bounds.size() == 3 ? bounds[2] : 1;
  if (step == 0 || (end - start) / step > static_cast<double>(kMaxArange)) {
    throw tensor_error(source, call, "this sequence is too long to be written out");
  }
  List values;
  for (std::int64_t i = 0; step > 0 ? start + static_cast<double>(i) * step < end
                                    : start + static_cast<double>(i) * step > end;
       ++i) {
    const double value = start + static_cast<double>(i) * step;
    values.items.push_back(is_integral ? Argument(static_cast<std::int64_t>(value))
                                       : Argument(value));
  }
  made.fill = Fill::values;
  made.meta.sizes = {SizeExpr(static_cast<std::int64_t>(values.items.size()))};
  made.values = std::move(values);
  made.meta.dtype =
      dtype_keyword(source, call, is_integral ? c10::ScalarType::Long : c10::ScalarType::Float);
  if (made.meta.sizes[0] == SizeExpr(0)) {
    made.fill = Fill::zeros;
    made.values = Argument();
  }
}

// rand_strided(sizes, strides, dtype=torch.float32, device='cpu'), and torch.empty_strided.
void make_strided(const Source& source, const Expression& call, TensorAttribute& made) {
  const Expression* sizes = argument_of(call, 0, "size");
  const Expression* strides = argument_of(call, 1, "stride");
  if (sizes == nullptr || strides == nullptr) {
    throw tensor_error(source, call, "expected sizes and strides");
  }
  made.meta.sizes = size_items(source, *sizes);
  made.meta.strides = size_items(source, *strides);
  if (made.meta.sizes.size() != made.meta.strides.size()) {
    throw tensor_error(source, *strides, "expected as many strides as sizes");
  }
  made.meta.dtype = dtype_keyword(source, call, c10::ScalarType::Float);
  if (call.children.size() > 3) {
    const auto dtype = dtype_named(*call.children[3]);
    if (!dtype) throw tensor_error(source, *call.children[3], "expected a dtype");
    made.meta.dtype = *dtype;
  }
  if (call.children.size() > 4) made.meta.device = device_value(source, *call.children[4]);
  made.fill = c10::isFloatingType(made.meta.dtype) ? Fill::randn : Fill::zeros;
}

struct Maker {
  std::string_view name;
  void (*make)(const Source&, const Expression&, TensorAttribute&);
};

constexpr std::array kMakers = {
    Maker{"arange", make_arange},
    Maker{"empty", make_zeros},
    Maker{"empty_strided", make_strided},
    Maker{"full", make_full},
    Maker{"ones", make_ones},
    Maker{"rand", make_rand},
    Maker{"rand_strided", make_strided},
    Maker{"randint", make_randint},
    Maker{"randn", make_randn},
    Maker{"tensor", make_tensor},
    Maker{"zeros", make_zeros},
};

// `torch.randn`, `tensor`, `torch._dynamo.testing.rand_strided`.
const Maker* find_maker(const std::string& callee) {
  std::string_view name = callee;
  for (const std::string_view module :
       {"torch._dynamo.testing.", "torchdynamo.testing.", "torch."}) {
    if (name.starts_with(module)) {
      name.remove_prefix(module.size());
      break;
    }
  }
  const auto* found = std::ranges::find(kMakers, name, &Maker::name);
  if (found == kMakers.end()) return nullptr;
  const bool is_plain = name.size() == callee.size();
  return !is_plain || name == "tensor" || name == "rand_strided" ? found : nullptr;
}

// ---- what may stand behind a tensor ----

constexpr std::array<std::string_view, 6> kNoChange = {"clone",      "detach", "detach_",
                                                       "contiguous", "data",   "pin_memory"};

void transpose(TensorAttribute& tensor, std::int64_t first, std::int64_t second) {
  const auto rank = static_cast<std::int64_t>(tensor.meta.sizes.size());
  first += first < 0 ? rank : 0;
  second += second < 0 ? rank : 0;
  if (first < 0 || second < 0 || first >= rank || second >= rank) return;
  std::swap(tensor.meta.sizes[static_cast<std::size_t>(first)],
            tensor.meta.sizes[static_cast<std::size_t>(second)]);
  std::swap(tensor.meta.strides[static_cast<std::size_t>(first)],
            tensor.meta.strides[static_cast<std::size_t>(second)]);
}

// Written elements in lists of the sizes from `dim` on, taken in order from `at`.
Argument nested(const std::vector<Argument>& elements, const std::vector<SizeExpr>& sizes,
                std::size_t dim, std::size_t& at) {
  if (dim == sizes.size()) return elements[at++];
  List list;
  for (std::int64_t i = 0; i < sizes[dim].constant().value_or(0); ++i) {
    list.items.push_back(nested(elements, sizes, dim + 1, at));
  }
  return list;
}

void flatten(const Argument& values, std::vector<Argument>& into) {
  if (values.get_if<List>() == nullptr && values.get_if<Tuple>() == nullptr) {
    into.push_back(values);
    return;
  }
  for (const Argument& item : values.items()) flatten(item, into);
}

// False if the elements do not fit, or have strides of their own.
bool reshape(TensorAttribute& tensor, std::vector<SizeExpr> sizes) {
  if (!(tensor.meta.strides == contiguous_strides(tensor.meta.sizes))) return false;
  const auto product = [](const std::vector<SizeExpr>& of) -> std::optional<std::int64_t> {
    std::int64_t elements = 1;
    for (const SizeExpr& size : of) {
      const auto number = size.constant();
      if (!number || __builtin_mul_overflow(elements, *number, &elements)) return std::nullopt;
    }
    return elements;
  };
  const auto elements = product(tensor.meta.sizes);
  for (SizeExpr& size : sizes) {
    const auto others = product(sizes);
    if (size.constant() != -1 || !elements || others.value_or(0) == 0) continue;
    size = *elements / -*others;
  }
  if (std::ranges::any_of(sizes, [](const SizeExpr& size) { return size.constant() == -1; }) ||
      (elements && product(sizes) && elements != product(sizes))) {
    return false;
  }
  if (tensor.fill == Fill::values) {
    if (!elements || !product(sizes)) return false;
    std::vector<Argument> flat;
    flatten(tensor.values, flat);
    std::size_t at = 0;
    if (static_cast<std::int64_t>(flat.size()) != *elements) return false;
    tensor.values = nested(flat, sizes, 0, at);
  }
  tensor.meta.sizes = std::move(sizes);
  tensor.meta.strides = contiguous_strides(tensor.meta.sizes);
  return true;
}

// Sets the values in place; false for any other method.
bool fill_in_place(const Source& source, std::string_view method, const Expression& call,
                   TensorAttribute& tensor) {
  const auto bound = [&](std::size_t at, std::string_view name, double fallback) {
    const Expression* given = argument_of(call, at, name);
    return given == nullptr ? fallback : number_value(source, *given);
  };
  if (method == "uniform_") {
    tensor.low = bound(0, "from", 0);
    tensor.high = bound(1, "to", 1);
    tensor.fill = Fill::uniform;
  } else if (method == "fill_") {
    tensor.low = bound(0, "value", 0);
    tensor.fill = Fill::constant;
  } else if (method == "zero_") {
    tensor.fill = Fill::zeros;
  } else if (method == "normal_" && call.children.size() == 1 && call.keywords.empty()) {
    tensor.fill = Fill::randn;
  } else {
    return false;
  }
  return true;
}

bool apply_method(const Source& source, const Expression& call, TensorAttribute& tensor) {
  const std::string_view method = call.children[0]->text;
  if (const auto dtype = dtype_of_conversion(call)) {
    // Random numbers may be drawn in the new type at once; others keep what they were.
    tensor.meta.dtype = *dtype;
    if (tensor.fill == Fill::randn && !c10::isFloatingType(*dtype)) return false;
    if (method != "to") return true;
  }
  if (only_moves(source, call)) {
    for (const Expression* argument : call.children.subspan(1)) {
      if (argument->kind == Kind::string) tensor.meta.device = device_value(source, *argument);
    }
    if (const Expression* device = keyword_of(call, "device")) {
      tensor.meta.device = device_value(source, *device);
    }
    if (method == "cuda") tensor.meta.device = c10::Device(c10::DeviceType::CUDA);
    return true;
  }
  if (method == "requires_grad_") {
    const Expression* flag = argument_of(call, 0, "requires_grad");
    tensor.meta.requires_grad = flag == nullptr || flag->magnitude != 0;
    return true;
  }
  if (std::ranges::find(kNoChange, method) != kNoChange.end()) return true;
  if (fill_in_place(source, method, call, tensor)) return true;
  if (method == "view" || method == "reshape") {
    return reshape(tensor, called_sizes(source, call, 0, /*least=*/-1));
  }
  if (tensor.fill == Fill::values) return false;  // elements stand in a fixed order
  if (method == "t" && tensor.meta.sizes.size() == 2) {
    transpose(tensor, 0, 1);
    return true;
  }
  if (method == "transpose" && call.children.size() == 3) {
    transpose(tensor, static_cast<std::int64_t>(number_value(source, *call.children[1])),
              static_cast<std::int64_t>(number_value(source, *call.children[2])));
    return true;
  }
  return false;
}

}  // namespace

std::optional<c10::ScalarType> dtype_of_conversion(const Expression& call) {
  if (call.kind != Kind::call || call.children[0]->kind != Kind::attribute) return std::nullopt;
  const std::string_view method = call.children[0]->text;
  constexpr std::array<std::string_view, 8> kMethods = {"half", "float", "double", "bfloat16",
                                                        "long", "int",   "bool",   "short"};
  if (std::ranges::find(kMethods, method) != kMethods.end()) return dtype_from_name(method);
  if (method != "to" && method != "type") return std::nullopt;
  for (const Expression* argument : call.children.subspan(1)) {
    if (const auto dtype = dtype_named(*argument)) return dtype;
  }
  const Expression* given = keyword_of(call, "dtype");
  return given == nullptr ? std::nullopt : dtype_named(*given);
}

bool only_moves(const Source& source, const Expression& call) {
  if (call.kind != Kind::call || call.children[0]->kind != Kind::attribute) return false;
  const std::string_view method = call.children[0]->text;
  if (method == "to") {
    if (keyword_of(call, "memory_format") != nullptr) return false;
    for (const Expression* argument : call.children.subspan(1)) {
      if (!dtype_named(*argument)) device_value(source, *argument);
    }
    return true;
  }
  return method == "cpu" || device_from_name(std::string(method)).has_value();
}

std::optional<TensorAttribute> tensor_from_syntax(const Source& source,
                                                  const Expression& expression) {
  if (expression.kind != Kind::call) return std::nullopt;
  const Expression& callee = *expression.children[0];
  if (callee.kind == Kind::attribute && callee.children[0]->kind == Kind::call) {
    auto tensor = tensor_from_syntax(source, *callee.children[0]);
    if (!tensor || !apply_method(source, expression, *tensor)) return std::nullopt;
    return tensor;
  }
  const Maker* maker = find_maker(python::dotted_name(callee));
  if (maker == nullptr) return std::nullopt;
  TensorAttribute made;
  maker->make(source, expression, made);
  if (made.meta.strides.empty()) made.meta.strides = contiguous_strides(made.meta.sizes);
  if (const Expression* device = keyword_of(expression, "device")) {
    if (device->kind != Kind::none) made.meta.device = device_value(source, *device);
  }
  if (const Expression* flag = keyword_of(expression, "requires_grad")) {
    made.meta.requires_grad = flag->magnitude != 0;
  }
  return made;
}

}  // namespace assay::graph
