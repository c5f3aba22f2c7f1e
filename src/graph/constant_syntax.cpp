#include "graph/constant_syntax.h"

#include <limits>
#include <numbers>

#include "graph/device_names.h"
#include "graph/dtype_names.h"
#include "graph/parse.h"

namespace assay::graph {

namespace {

using python::Expression;
using python::Source;
using Kind = Expression::Kind;

std::vector<Argument> read_items(const Expression& expression, const SyntaxReader& read_item) {
  std::vector<Argument> items;
  items.reserve(expression.children.size());
  for (const Expression* child : expression.children) items.push_back(read_item(*child));
  return items;
}

Argument integer(const Source& source, const Expression& expression, bool is_negative) {
  const std::uint64_t magnitude = expression.magnitude;
  const std::uint64_t limit = std::uint64_t{1} << 63U;
  if (magnitude > limit || (magnitude == limit && !is_negative)) {
    throw source.error(expression.offset, expression.end - expression.offset,
                       "this integer does not fit 64 bits");
  }
  if (is_negative) return static_cast<std::int64_t>(~magnitude + 1);
  return static_cast<std::int64_t>(magnitude);
}

std::optional<Argument> negated(const Source& source, const Expression& expression) {
  const Expression& operand = *expression.children[0];
  const bool is_negative = expression.text == "-";
  if (!is_negative && expression.text != "+") return std::nullopt;
  const double sign = is_negative ? -1.0 : 1.0;
  switch (operand.kind) {
    case Kind::integer:
      return integer(source, operand, is_negative);
    case Kind::floating:
      return sign * operand.number;
    case Kind::imaginary:
      return std::complex<double>(0, sign * operand.number);
    case Kind::name:
      if (operand.text == "inf") return sign * std::numeric_limits<double>::infinity();
      if (operand.text == "nan") return std::numeric_limits<double>::quiet_NaN();
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<Argument> named_constant(const std::string& name) {
  if (name == "inf" || name == "math.inf" || name == "torch.inf") {
    return std::numeric_limits<double>::infinity();
  }
  if (name == "nan" || name == "math.nan" || name == "torch.nan") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (name == "math.pi" || name == "torch.pi") return std::numbers::pi;
  if (name == "math.e" || name == "torch.e") return std::numbers::e;
  if (name == "Ellipsis") return Ellipsis{};
  constexpr std::string_view kTorch = "torch.";
  if (!name.starts_with(kTorch)) return std::nullopt;
  const std::string_view rest = std::string_view(name).substr(kTorch.size());
  if (auto dtype = dtype_from_name(rest)) return *dtype;
  if (auto layout = layout_from_name(rest)) return *layout;
  if (auto format = memory_format_from_name(rest)) return *format;
  return std::nullopt;
}

Argument device(const Source& source, const Expression& call) {
  std::optional<std::string> type;
  std::optional<std::int64_t> index;
  const auto take = [&](std::string_view keyword, const Expression& value) {
    if (value.kind == Kind::string && keyword != "index" && !type) {
      type = std::string(value.value);
    } else if (value.kind == Kind::integer && keyword != "type" && !index) {
      index = static_cast<std::int64_t>(value.magnitude);
    } else if (value.kind == Kind::none && keyword == "index") {
      return;
    } else {
      throw source.error(value.offset, value.end - value.offset, "not a device",
                         "expected device(type='cpu') or device(type='cuda', index=0)");
    }
  };
  for (std::size_t i = 1; i < call.children.size(); ++i) take("", *call.children[i]);
  for (const auto& keyword : call.keywords) take(keyword.name, *keyword.value);
  std::string text = type.value_or("");
  if (index) text += ":" + std::to_string(*index);
  if (const auto found = device_from_name(text)) return *found;
  throw source.error(call.offset, call.end - call.offset, "not a device PyTorch knows",
                     "expected device(type='cpu') or device(type='cuda', index=0)");
}

Argument slice(const Source& source, const Expression& call, const SyntaxReader& read_item) {
  std::vector<Argument> parts;
  for (std::size_t i = 1; i < call.children.size(); ++i) {
    parts.push_back(read_item(*call.children[i]));
  }
  if (parts.empty() || parts.size() > 3 || !call.keywords.empty()) {
    throw source.error(call.offset, call.end - call.offset, "slice() takes one to three arguments");
  }
  if (parts.size() == 1) parts.insert(parts.begin(), Argument());
  parts.resize(3);
  return Slice{std::move(parts)};
}

// float('inf'), float('-inf'), float('nan')
Argument float_from_text(const Source& source, const Expression& text) {
  std::string_view name = text.value;
  const double sign = name.starts_with('-') ? -1.0 : 1.0;
  if (name.starts_with('-') || name.starts_with('+')) name.remove_prefix(1);
  if (name == "inf" || name == "Infinity") return sign * std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw source.error(text.offset, text.end - text.offset, "expected 'inf' or 'nan'");
}

std::optional<Argument> constructor(const Source& source, const Expression& call,
                                    const SyntaxReader& read_item) {
  const std::string callee = python::dotted_name(*call.children[0]);
  if (callee == "device" || callee == "torch.device") return device(source, call);
  if (callee == "slice") return slice(source, call, read_item);
  if (callee == "float" && call.children.size() == 2 && call.keywords.empty() &&
      call.children[1]->kind == Kind::string) {
    return float_from_text(source, *call.children[1]);
  }
  if (callee == "complex" && call.children.size() == 3 && call.keywords.empty()) {
    const auto part = [&](std::size_t i) {
      const Argument value = read_item(*call.children[i]);
      if (const auto* number = value.get_if<double>()) return *number;
      if (const auto* number = value.get_if<std::int64_t>()) return static_cast<double>(*number);
      throw source.error(call.children[i]->offset, 1, "expected a number");
    };
    return std::complex<double>(part(1), part(2));
  }
  if ((callee == "torch.Size" || callee == "torch.size") && call.children.size() == 2) {
    return Tuple{read_item(*call.children[1]).items()};
  }
  return std::nullopt;
}

Argument dict(const Source& source, const Expression& expression, const SyntaxReader& read_item) {
  Dict made;
  for (std::size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    const Expression& key = *expression.children[i];
    if (key.kind != Kind::string) {
      throw source.error(key.offset, key.end - key.offset, "expected a string as key");
    }
    made.keys.emplace_back(key.value);
    made.items.push_back(read_item(*expression.children[i + 1]));
  }
  return made;
}

}  // namespace

std::optional<Argument> literal_from_syntax(const Source& source, const Expression& expression,
                                            const SyntaxReader& read_item) {
  switch (expression.kind) {
    case Kind::none:
      return Argument();
    case Kind::boolean:
      return expression.magnitude != 0;
    case Kind::integer:
      return integer(source, expression, false);
    case Kind::floating:
      return expression.number;
    case Kind::imaginary:
      return std::complex<double>(0, expression.number);
    case Kind::string:
      return std::string(expression.value);
    case Kind::ellipsis:
      return Ellipsis{};
    case Kind::tuple:
      return Tuple{read_items(expression, read_item)};
    case Kind::list:
      return List{read_items(expression, read_item)};
    case Kind::dict:
      return dict(source, expression, read_item);
    case Kind::slice: {
      std::vector<Argument> parts;
      for (const Expression* part : expression.children) {
        parts.push_back(part == nullptr ? Argument() : read_item(*part));
      }
      return Slice{std::move(parts)};
    }
    case Kind::unary:
      return negated(source, expression);
    case Kind::name:
    case Kind::attribute:
      return named_constant(python::dotted_name(expression));
    case Kind::call:
      return constructor(source, expression, read_item);
    default:
      return std::nullopt;
  }
}

Argument constant_from_syntax(const Source& source, const Expression& expression) {
  const SyntaxReader read = [&](const Expression& item) {
    return constant_from_syntax(source, item);
  };
  if (auto literal = literal_from_syntax(source, expression, read)) return std::move(*literal);
  if (std::string name = python::dotted_name(expression); name.find('.') != std::string::npos) {
    return QualifiedName{std::move(name)};
  }
  throw source.error(expression.offset, expression.end - expression.offset,
                     "expected a constant: a number, string, dtype, device or list of these");
}

}  // namespace assay::graph
