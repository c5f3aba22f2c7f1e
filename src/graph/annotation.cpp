#include "graph/annotation.h"

#include <algorithm>

#include "assay/error.h"
#include "graph/dtype_names.h"

namespace assay::graph {

namespace {

using python::Expression;
using Operation = SizeExpr::Operation;

constexpr std::string_view kRequiresGrad = " requires_grad";

std::string size_list(const std::vector<SizeExpr>& sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) text += ", ";
    text += sizes[i].str();
  }
  return text + "]";
}

std::optional<SizeExpr> parse_size(std::string_view text) {
  try {
    const python::Source source{"annotation", std::string(text)};
    python::Module module;
    return size_from_syntax(*python::parse_expression(source, module));
  } catch (const UserError&) {
    return std::nullopt;  // not an annotation of ours
  }
}

// Splits at commas outside any bracket.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (begin < text.size()) parts.push_back(text.substr(begin));
  for (std::string_view& part : parts) {
    while (part.starts_with(' ')) part.remove_prefix(1);
  }
  return parts;
}

// `[8, 16]` at the front of `rest`.
std::optional<std::vector<SizeExpr>> take_sizes(std::string_view& rest) {
  if (!rest.starts_with('[')) return std::nullopt;
  const auto close = rest.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  std::vector<SizeExpr> sizes;
  for (std::string_view part : split(rest.substr(1, close - 1))) {
    const bool is_number = !part.empty() && part.size() < 18 &&
                           std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    auto size =
        is_number ? std::optional<SizeExpr>(std::stoll(std::string(part))) : parse_size(part);
    if (!size) return std::nullopt;
    sizes.push_back(std::move(*size));
  }
  rest.remove_prefix(close + 1);
  return sizes;
}

std::optional<c10::Device> parse_device(std::string_view text) {
  try {
    return c10::Device(std::string(text));
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

std::optional<ValueMeta> parse_tensor(std::string_view text) {
  const auto bracket = text.find('[');
  if (bracket == std::string_view::npos) return std::nullopt;
  auto dtype = dtype_from_abbreviation(text.substr(0, bracket));
  if (!dtype) return std::nullopt;
  TensorMeta meta;
  meta.dtype = *dtype;
  std::string_view rest = text.substr(bracket);
  if (rest.ends_with(kRequiresGrad)) {
    meta.requires_grad = true;
    rest.remove_suffix(kRequiresGrad.size());
  }
  auto sizes = take_sizes(rest);
  if (!sizes) return std::nullopt;
  meta.sizes = std::move(*sizes);
  if (rest.starts_with('[')) {
    auto strides = take_sizes(rest);
    if (!strides || strides->size() != meta.sizes.size()) return std::nullopt;
    meta.strides = std::move(*strides);
  } else {
    meta.strides = contiguous_strides(meta.sizes);
  }
  if (!rest.empty()) {
    auto device = parse_device(rest);
    if (!device) return std::nullopt;
    meta.device = *device;
  }
  return ValueMeta{std::move(meta)};
}

// Nested only as deep as values nest in practice, so that a hostile text cannot exhaust the stack.
constexpr int kMaxNesting = 16;

std::optional<ValueMeta> parse_value(std::string_view text, int nesting) {
  if (nesting > kMaxNesting) return std::nullopt;
  if (text == "?") return ValueMeta{};

  if (text.starts_with("Sym(") && text.ends_with(')')) {
    auto size = parse_size(text.substr(4, text.size() - 5));
    if (!size) return std::nullopt;
    return ValueMeta{std::move(*size)};
  }
  if (text.starts_with('(') && text.ends_with(')')) {
    std::vector<ValueMeta> values;
    for (std::string_view part : split(text.substr(1, text.size() - 2))) {
      auto value = parse_value(part, nesting + 1);
      if (!value) return std::nullopt;
      values.push_back(std::move(*value));
    }
    return ValueMeta{std::move(values)};
  }
  return parse_tensor(text);
}

std::optional<Operation> size_operation(std::string_view text) {
  if (text == "+") return Operation::add;
  if (text == "-") return Operation::subtract;
  if (text == "*") return Operation::multiply;
  if (text == "//") return Operation::floor_divide;
  if (text == "%" || text == "Mod" || text == "PythonMod") return Operation::modulo;
  if (text == "**") return Operation::power;
  if (text == "Min" || text == "min") return Operation::minimum;
  if (text == "Max" || text == "max") return Operation::maximum;
  if (text == "FloorDiv") return Operation::floor_divide;
  return std::nullopt;
}

std::optional<SizeExpr> binary_size(std::string_view operation_text, const Expression& left,
                                    const Expression& right) {
  auto operation = size_operation(operation_text);
  auto left_size = size_from_syntax(left);
  auto right_size = size_from_syntax(right);
  if (!operation || !left_size || !right_size) return std::nullopt;
  return SizeExpr::binary(*operation, std::move(*left_size), std::move(*right_size));
}

}  // namespace

std::string annotation_text(const ValueMeta& meta) {
  if (const TensorMeta* tensor = meta.tensor()) {
    return std::string(dtype_abbreviation(tensor->dtype)) + size_list(tensor->sizes) +
           size_list(tensor->strides) + tensor->device.str() +
           (tensor->requires_grad ? std::string(kRequiresGrad) : std::string());
  }
  if (const auto* size = std::get_if<SizeExpr>(&meta.value)) return "Sym(" + size->str() + ")";
  if (const auto* values = std::get_if<std::vector<ValueMeta>>(&meta.value)) {
    std::string text = "(";
    for (std::size_t i = 0; i < values->size(); ++i) {
      if (i > 0) text += ", ";
      text += annotation_text((*values)[i]);
    }
    return text + ")";
  }
  return "?";
}

std::optional<ValueMeta> parse_annotation(std::string_view text) { return parse_value(text, 0); }

std::optional<SizeExpr> size_from_syntax(const Expression& expression) {
  switch (expression.kind) {
    case Expression::Kind::integer:
      if (expression.magnitude > INT64_MAX) return std::nullopt;
      return SizeExpr(static_cast<std::int64_t>(expression.magnitude));
    case Expression::Kind::name:
      return SizeExpr::symbol(std::string(expression.text));
    case Expression::Kind::unary:
      if (expression.text != "-") return std::nullopt;
      if (auto size = size_from_syntax(*expression.children[0])) {
        return SizeExpr::binary(Operation::subtract, 0, std::move(*size));
      }
      return std::nullopt;
    case Expression::Kind::binary:
      return binary_size(expression.text, *expression.children[0], *expression.children[1]);
    case Expression::Kind::call:
      if (expression.children.size() != 3 || !expression.keywords.empty()) return std::nullopt;
      return binary_size(python::dotted_name(*expression.children[0]), *expression.children[1],
                         *expression.children[2]);
    default:
      return std::nullopt;
  }
}

}  // namespace assay::graph
