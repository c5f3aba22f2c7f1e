#include "graph/annotation.h"

#include <algorithm>
#include <utility>

#include "assay/error.h"
#include "graph/device_names.h"
#include "graph/dtype_names.h"

namespace assay::graph {

namespace {

using python::Expression;
using Operation = SizeExpr::Operation;

constexpr std::string_view kRequiresGrad = " requires_grad";
constexpr std::string_view kStorageOffset = " storage_offset=";

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
  if (const auto at = rest.find(kStorageOffset); at != std::string_view::npos) {
    auto offset = parse_size(rest.substr(at + kStorageOffset.size()));
    if (!offset) return std::nullopt;
    meta.storage_offset = std::move(*offset);
    rest = rest.substr(0, at);
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
    auto device = device_from_name(std::string(rest));
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

std::optional<Operation> size_operator(std::string_view symbol) {
  if (symbol == "+") return Operation::add;
  if (symbol == "-") return Operation::subtract;
  if (symbol == "*") return Operation::multiply;
  if (symbol == "//") return Operation::floor_divide;
  if (symbol == "%") return Operation::modulo;
  if (symbol == "**") return Operation::power;
  return std::nullopt;
}

// The functions of torch.utils._sympy that are operations on integers.
std::optional<Operation> size_function(std::string_view name) {
  if (name == "Mod" || name == "PythonMod") return Operation::modulo;
  if (name == "FloorDiv" || name == "CleanDiv") return Operation::floor_divide;
  if (name == "PowByNatural") return Operation::power;
  if (name == "Min" || name == "min") return Operation::minimum;
  if (name == "Max" || name == "max") return Operation::maximum;
  return std::nullopt;
}

std::optional<SizeExpr> binary_size(const Expression& expression) {
  const auto operation = size_operator(expression.text);
  auto left = size_from_syntax(*expression.children[0]);
  auto right = size_from_syntax(*expression.children[1]);
  if (!operation || !left || !right) return std::nullopt;
  return SizeExpr::binary(*operation, std::move(*left), std::move(*right));
}

// The operands of a true division: `IntTrueDiv(a, b)`, and `a/b` as sympy prints it.
std::optional<std::pair<SizeExpr, SizeExpr>> true_division(const Expression& expression) {
  const Expression* left = nullptr;
  const Expression* right = nullptr;
  if (expression.kind == Expression::Kind::call && expression.children.size() == 3 &&
      expression.keywords.empty() && python::dotted_name(*expression.children[0]) == "IntTrueDiv") {
    left = expression.children[1];
    right = expression.children[2];
  } else if (expression.kind == Expression::Kind::binary && expression.text == "/") {
    left = expression.children[0];
    right = expression.children[1];
  } else {
    return std::nullopt;
  }
  auto numerator = size_from_syntax(*left);
  auto denominator = size_from_syntax(*right);
  if (!numerator || !denominator) return std::nullopt;
  return std::pair(std::move(*numerator), std::move(*denominator));
}

// Toward zero: what floor does on either side of it. The divisor is positive.
SizeExpr truncated_division(const SizeExpr& left, const SizeExpr& right) {
  const auto part = [&](const SizeExpr& operand) {
    return SizeExpr::binary(Operation::floor_divide,
                            SizeExpr::binary(Operation::maximum, operand, 0), right);
  };
  return SizeExpr::binary(Operation::subtract, part(left),
                          part(SizeExpr::binary(Operation::multiply, -1, left)));
}

// `FloorToInt(IntTrueDiv(a, b))`, `CeilToInt(...)`, `floor(a/b)`: a true division made an integer
// again; and functions that leave an integer as it is.
std::optional<SizeExpr> rounded_division(std::string_view function, const Expression& operand) {
  if (function.starts_with("math.")) function.remove_prefix(5);
  const bool is_floor = function == "FloorToInt" || function == "floor";
  const bool is_ceiling = function == "CeilToInt" || function == "ceiling" || function == "ceil";
  const bool is_truncation =
      function == "TruncToInt" || function == "Trunc" || function == "trunc" || function == "int";
  if (!is_floor && !is_ceiling && !is_truncation && function != "Identity") return std::nullopt;
  if (const auto division = true_division(operand)) {
    const auto& [left, right] = *division;
    if (is_floor) return SizeExpr::binary(Operation::floor_divide, left, right);
    if (is_ceiling) return SizeExpr::ceil_divide(left, right);
    return is_truncation ? std::optional(truncated_division(left, right)) : std::nullopt;
  }
  return size_from_syntax(operand);
}

// Each further operand of a minimum costs a comparison with all others.
constexpr std::size_t kMaxOperands = 64;

std::optional<SizeExpr> called_size(const Expression& call) {
  const std::string function = python::dotted_name(*call.children[0]);
  const std::size_t count = call.children.size() - 1;
  if (!call.keywords.empty() || count == 0 || count > kMaxOperands) return std::nullopt;
  if (count == 1) return rounded_division(function, *call.children[1]);
  std::vector<SizeExpr> operands;
  for (std::size_t i = 1; i <= count; ++i) {
    auto operand = size_from_syntax(*call.children[i]);
    if (!operand) return std::nullopt;
    operands.push_back(std::move(*operand));
  }
  if (function == "CeilDiv" && count == 2) return SizeExpr::ceil_divide(operands[0], operands[1]);
  if (function == "ModularIndexing" && count == 3) {  // (base // divisor) % modulus
    return SizeExpr::binary(Operation::modulo,
                            SizeExpr::binary(Operation::floor_divide, operands[0], operands[1]),
                            operands[2]);
  }
  const auto operation = size_function(function);
  const bool takes_many = operation == Operation::minimum || operation == Operation::maximum;
  if (!operation || (count > 2 && !takes_many)) return std::nullopt;
  SizeExpr result = operands[0];
  for (std::size_t i = 1; i < count; ++i) {
    result = SizeExpr::binary(*operation, result, operands[i]);
  }
  return result;
}

std::optional<SizeExpr> negated_size(const Expression& operand) {
  const std::uint64_t smallest = std::uint64_t{1} << 63U;
  if (operand.kind == Expression::Kind::integer && operand.magnitude == smallest) return INT64_MIN;
  const auto size = size_from_syntax(operand);
  if (!size) return std::nullopt;
  return SizeExpr::binary(Operation::multiply, -1, *size);
}

}  // namespace

std::string annotation_text(const ValueMeta& meta) {
  if (const TensorMeta* tensor = meta.tensor()) {
    const SizeExpr& offset = tensor->storage_offset;
    return std::string(dtype_abbreviation(tensor->dtype)) + size_list(tensor->sizes) +
           size_list(tensor->strides) + tensor->device.str() +
           (offset == SizeExpr(0) ? "" : std::string(kStorageOffset) + offset.str()) +
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
      return expression.text == "-" ? negated_size(*expression.children[0]) : std::nullopt;
    case Expression::Kind::binary:
      return binary_size(expression);
    case Expression::Kind::call:
      return called_size(expression);
    default:
      return std::nullopt;
  }
}

}  // namespace assay::graph
