#include "graph/module_syntax.h"

#include <string>
#include <utility>

#include "graph/parse.h"

namespace assay::graph {

namespace {

using python::Expression;
using python::Source;
using python::Statement;
using Kind = Expression::Kind;

UserError error(const Source& source, const Expression& at, const std::string& message,
                const std::string& hint = {}) {
  return source.error(at.offset, at.end - at.offset, message, hint);
}

const Expression* keyword(const Expression& call, std::string_view name) {
  for (const auto& candidate : call.keywords) {
    if (candidate.name == name) return candidate.value;
  }
  return nullptr;
}

std::string callee(const Expression& expression) {
  return expression.kind == Kind::call ? python::dotted_name(*expression.children[0])
                                       : std::string();
}

std::vector<SizeExpr> sizes_from(const Source& source, const Expression& expression) {
  const Argument value = constant_from_syntax(source, expression);
  std::vector<SizeExpr> sizes;
  for (const Argument& item : value.items()) {
    const auto* size = item.get_if<std::int64_t>();
    if (size == nullptr || *size < 0) throw error(source, expression, "expected a list of sizes");
    sizes.emplace_back(*size);
  }
  return sizes;
}

c10::ScalarType dtype_from(const Source& source, const Expression& call, c10::ScalarType fallback) {
  const Expression* given = keyword(call, "dtype");
  if (given == nullptr) return fallback;
  const Argument value = constant_from_syntax(source, *given);
  if (const auto* dtype = value.get_if<c10::ScalarType>()) return *dtype;
  throw error(source, *given, "expected a dtype such as torch.float32");
}

c10::Device device_from(const Source& source, const Expression& expression) {
  const Argument value = constant_from_syntax(source, expression);
  if (const auto* device = value.get_if<c10::Device>()) return *device;
  try {
    if (const auto* name = value.get_if<std::string>()) return c10::Device(*name);
  } catch (const c10::Error&) {
    throw error(source, expression, "not a device PyTorch knows");
  }
  throw error(source, expression, "expected a device");
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
    if (i > 0 && !(shape == inner)) throw error(source, at, "the lists differ in length");
    inner = std::move(shape);
  }
  inner.insert(inner.begin(), SizeExpr(static_cast<std::int64_t>(items.size())));
  return inner;
}

std::optional<TensorAttribute> tensor_from(const Source& source, const Expression& expression) {
  // `torch.randn(...).to("cuda:0")`, `....cuda()`
  if (expression.kind == Kind::call && expression.children[0]->kind == Kind::attribute &&
      expression.children[0]->children[0]->kind == Kind::call) {
    auto tensor = tensor_from(source, *expression.children[0]->children[0]);
    const std::string_view method = expression.children[0]->text;
    if (!tensor || (method != "to" && method != "cuda" && method != "cpu")) return std::nullopt;
    if (method == "cuda") tensor->meta.device = c10::Device(c10::DeviceType::CUDA);
    if (method == "to" && expression.children.size() == 2 &&
        expression.children[1]->kind == Kind::string) {
      tensor->meta.device = device_from(source, *expression.children[1]);
    }
    return tensor;
  }
  const std::string name = callee(expression);
  const bool has_argument = expression.kind == Kind::call && expression.children.size() > 1;
  TensorAttribute made;
  if ((name == "torch.randn" || name == "torch.zeros") && has_argument) {
    made.fill = name == "torch.randn" ? TensorAttribute::Fill::randn : TensorAttribute::Fill::zeros;
    made.meta.sizes = sizes_from(source, *expression.children[1]);
    made.meta.dtype = dtype_from(source, expression, c10::ScalarType::Float);
  } else if (name == "torch.randint" && keyword(expression, "size") != nullptr) {
    // Stock PyTorch writes randint(1, ...), which can only give zeros.
    made.fill = TensorAttribute::Fill::zeros;
    made.meta.sizes = sizes_from(source, *keyword(expression, "size"));
    made.meta.dtype = dtype_from(source, expression, c10::ScalarType::Long);
  } else if ((name == "tensor" || name == "torch.tensor") && has_argument) {
    made.fill = TensorAttribute::Fill::values;
    made.values = constant_from_syntax(source, *expression.children[1]);
    made.meta.sizes = shape_of(source, *expression.children[1], made.values);
    made.meta.dtype = dtype_from(source, expression, inferred_dtype(made.values));
    if (const Expression* size = keyword(expression, "size")) {  // an empty tensor's repr
      made.fill = TensorAttribute::Fill::zeros;
      made.meta.sizes = sizes_from(source, *size);
    }
  } else {
    return std::nullopt;
  }
  made.meta.strides = contiguous_strides(made.meta.sizes);
  if (const Expression* device = keyword(expression, "device")) {
    made.meta.device = device_from(source, *device);
  }
  return made;
}

ModuleAttribute module_from(const Source& source, const Expression& call) {
  ModuleAttribute made;
  made.constructor = callee(call);
  for (std::size_t i = 1; i < call.children.size(); ++i) {
    made.args.push_back(constant_from_syntax(source, *call.children[i]));
  }
  for (const auto& candidate : call.keywords) {
    if (candidate.name.empty()) throw error(source, *candidate.value, "unexpected '**'");
    made.kwargs.push_back(
        {std::string(candidate.name), constant_from_syntax(source, *candidate.value)});
  }
  return made;
}

std::optional<Attribute> registered_buffer(const Source& source, const Expression& call) {
  if (callee(call) != "self.register_buffer") return std::nullopt;
  if (call.children.size() < 3 || call.children[1]->kind != Kind::string) {
    throw error(source, call, "expected register_buffer('name', tensor)");
  }
  auto tensor = tensor_from(source, *call.children[2]);
  if (!tensor) {
    throw error(source, *call.children[2], "not a tensor Assay can make without running Python",
                "expected torch.randn([...]), torch.zeros([...]) or tensor([...])");
  }
  return Attribute{std::string(call.children[1]->value), std::move(*tensor)};
}

bool is_super_call(const Expression& expression) {
  return expression.kind == Kind::call && expression.children[0]->kind == Kind::attribute &&
         expression.children[0]->text == "__init__";
}

}  // namespace

std::optional<Attribute> attribute_from_syntax(const Source& source, const Statement& statement) {
  if (statement.kind == Statement::Kind::pass) return std::nullopt;
  if (statement.kind == Statement::Kind::expression) {
    const Expression& value = *statement.value;
    if (is_super_call(value) || value.kind == Kind::string) return std::nullopt;
    if (auto buffer = registered_buffer(source, value)) return buffer;
  }
  const bool sets_attribute = statement.kind == Statement::Kind::assign &&
                              statement.targets.size() == 1 &&
                              statement.targets[0]->kind == Kind::attribute &&
                              python::dotted_name(*statement.targets[0]).starts_with("self.");
  if (!sets_attribute) {
    throw source.error(statement.offset, statement.end - statement.offset,
                       "__init__ of a graph cannot contain this statement",
                       "expected 'self.name = Module(...)' or 'self.register_buffer(...)'");
  }
  const std::string name = python::dotted_name(*statement.targets[0]).substr(5);
  const Expression& value = *statement.value;
  if (value.kind == Kind::missing) {
    return Attribute{name, MissingSubgraph{std::string(value.text)}};
  }
  const std::string constructor = callee(value);
  if ((constructor == "torch.nn.Parameter" || constructor == "Parameter") &&
      value.children.size() > 1) {
    if (auto tensor = tensor_from(source, *value.children[1])) {
      const Expression* requires_grad = keyword(value, "requires_grad");
      tensor->is_parameter = true;
      tensor->meta.requires_grad = requires_grad == nullptr || requires_grad->magnitude != 0;
      return Attribute{name, std::move(*tensor)};
    }
  }
  if (auto tensor = tensor_from(source, value)) return Attribute{name, std::move(*tensor)};
  if (constructor.empty()) {
    throw error(source, value, "not an attribute Assay can make without running Python",
                "expected a module's constructor or a tensor");
  }
  return Attribute{name, module_from(source, value)};
}

}  // namespace assay::graph
