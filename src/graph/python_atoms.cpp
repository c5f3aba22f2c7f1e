// Names, literals and what stands in brackets.
#include <charconv>

#include "assay/error.h"
#include "graph/python_expression_parser.h"
#include "graph/python_strings.h"

namespace assay::graph::python {

const Expression* ExpressionParser::comprehension(std::size_t begin) {
  int depth = 0;
  while (!at(TokenKind::end)) {
    if (at("(") || at("[") || at("{")) ++depth;
    if (at(")") || at("]") || at("}")) {
      if (depth == 0) break;
      --depth;
    }
    ++next_;
  }
  return opaque(begin, "a comprehension");
}

const Expression* ExpressionParser::atom() {
  const std::size_t begin = token().offset;
  if (at(TokenKind::number)) return number();
  if (at(TokenKind::string)) return string();
  if (accept("(")) return sequence(Kind::tuple, ")", begin);
  if (accept("[")) return sequence(Kind::list, "]", begin);
  if (accept("{")) return dict_or_set(begin);
  if (accept("...")) return finish(make(Kind::ellipsis, begin));
  if (accept("None")) return finish(make(Kind::none, begin));
  if (at("True") || at("False")) {
    Expression& made = make(Kind::boolean, begin);
    made.magnitude = at("True") ? 1 : 0;
    ++next_;
    return finish(made);
  }
  if (at("<")) return missing_object(begin);
  if (at("yield")) fail("expected an expression");
  Expression& made = make(Kind::name, begin);
  made.text = expect_name("an expression");
  return finish(made);
}

const Expression* ExpressionParser::missing_object(std::size_t begin) {
  ++next_;
  if (!at("lambda") && !at(TokenKind::name)) fail("expected an expression");
  int depth = 1;
  while (depth > 0 && !at(TokenKind::newline) && !at(TokenKind::end)) {
    if (at("<")) ++depth;
    if (at(">")) --depth;
    ++next_;
  }
  if (depth > 0) fail("expected '>'");
  // `()`, or the names of the subgraphs inside: `( (true_graph_0): <lambda>() )`.
  if (at("(")) {
    int open = 0;
    do {
      if (at(TokenKind::end)) fail("expected ')'");
      if (at("(")) ++open;
      if (at(")")) --open;
      ++next_;
    } while (open > 0);
  }
  Expression& made = make(Kind::missing, begin);
  made.text = std::string_view(source_.text).substr(begin, previous_end() - begin);
  return finish(made);
}

const Expression* ExpressionParser::sequence(Kind kind, std::string_view closing,
                                             std::size_t begin) {
  Expression& made = make(kind, begin);
  Children items(*this, children_);
  bool has_comma = false;
  while (!at(closing)) {
    const Expression* item = starred_expression();
    if (at("for") || at("async")) item = comprehension(item->offset);
    items.add(item);
    if (!accept(",")) {
      if (!at(closing)) fail("expected ',' or '" + std::string(closing) + "'");
      break;
    }
    has_comma = true;
  }
  expect(closing);
  if (kind == Kind::tuple && items.size() == 1 && !has_comma) return items.front();
  made.children = items.keep();
  return finish(made);
}

const Expression* ExpressionParser::dict_or_set(std::size_t begin) {
  Expression& made = make(Kind::dict, begin);
  Children items(*this, children_);
  bool is_dict = true;
  while (!at("}")) {
    if (accept("**")) {
      expression();
      is_dict = false;
    } else {
      items.add(starred_expression());
      if (accept(":")) {
        items.add(expression());
      } else {
        is_dict = false;
      }
      if (at("for") || at("async")) {
        comprehension(begin);
        is_dict = false;
      }
    }
    if (!accept(",")) break;
  }
  expect("}");
  if (!is_dict) return opaque(begin, "a set or comprehension");
  made.children = items.keep();
  return finish(made);
}

const Expression* ExpressionParser::number() {
  const Token& literal = token();
  std::string digits(literal.text);
  std::erase(digits, '_');
  ++next_;
  const auto bad = [&]() -> UserError {
    return source_.error(literal.offset, literal.text.size(), "not a number Assay can represent",
                         "expected an integer of at most 64 bits or a floating point number");
  };
  int base = 10;
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  if (digits.size() > 2 && digits[0] == '0') {
    const char marker = static_cast<char>(digits[1] | 0x20);
    base = marker == 'x' ? 16 : marker == 'o' ? 8 : marker == 'b' ? 2 : 10;
    if (base != 10) begin += 2;
  }
  std::uint64_t magnitude = 0;
  auto [integer_end, integer_error] = std::from_chars(begin, end, magnitude, base);
  if (integer_error == std::errc() && integer_end == end) {
    Expression& made = make(Kind::integer, literal.offset);
    made.magnitude = magnitude;
    return finish(made);
  }
  if (base != 10) throw bad();
  const bool is_imaginary = end[-1] == 'j' || end[-1] == 'J';
  if (is_imaginary) --end;
  double value = 0;
  auto [float_end, float_error] = std::from_chars(begin, end, value);
  const bool is_integer_text = std::all_of(begin, end, [](char c) { return c >= '0' && c <= '9'; });
  if (float_end != end || (is_integer_text && !is_imaginary) ||
      float_error == std::errc::invalid_argument) {
    throw bad();
  }
  if (float_error == std::errc::result_out_of_range) throw bad();
  Expression& made = make(is_imaginary ? Kind::imaginary : Kind::floating, literal.offset);
  made.number = value;
  return finish(made);
}

const Expression* ExpressionParser::string() {
  const std::size_t begin = token().offset;
  Expression& made = make(Kind::string, begin);
  bool is_plain = true;
  std::string value;
  for (; at(TokenKind::string); ++next_) {
    const Token& part = token();
    if (part.is_formatted || part.is_bytes) is_plain = false;
    if (part.is_raw) {
      value += part.text;
    } else if (auto decoded = unescape(part.text)) {
      value += *decoded;
    } else {
      throw source_.error(begin, part.text.size() + 1, "bad escape sequence in this string");
    }
  }
  if (!is_plain) return opaque(begin, "a formatted or bytes string");
  const auto kept = keep(std::span<const char>(value));
  made.value = std::string_view(kept.data(), kept.size());
  return finish(made);
}

}  // namespace assay::graph::python
