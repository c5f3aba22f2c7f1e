#include "graph/python_strings.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace assay::graph::python {

namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | (code >> 6U));
    put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | (code >> 12U));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | (code >> 18U));
    put(0x80U | ((code >> 12U) & 0x3FU));
    put(0x80U | ((code >> 6U) & 0x3FU));
    put(0x80U | (code & 0x3FU));
  }
}

// Reads exactly `digits` digits in `base` from the front of `rest`.
std::optional<std::uint32_t> take_code(std::string_view& rest, std::size_t digits, int base) {
  if (rest.size() < digits) return std::nullopt;
  std::uint32_t code = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + digits, code, base);
  if (error != std::errc() || end != rest.data() + digits) return std::nullopt;
  rest.remove_prefix(digits);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code > 0x10FFFF || is_surrogate) return std::nullopt;
  return code;
}

std::optional<char> simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> unescape(std::string_view body) {
  std::string out;
  out.reserve(body.size());
  for (std::string_view rest = body; !rest.empty();) {
    const char c = rest[0];
    rest.remove_prefix(1);
    if (c != '\\' || rest.empty()) {
      out.push_back(c);
      continue;
    }
    const char escape = rest[0];
    rest.remove_prefix(1);
    if (auto plain = simple_escape(escape)) {
      out.push_back(*plain);
    } else if (escape == '\n') {
      continue;
    } else if (escape == 'x' || escape == 'u' || escape == 'U') {
      auto code = take_code(rest, escape == 'x' ? 2 : escape == 'u' ? 4 : 8, 16);
      if (!code) return std::nullopt;
      append_utf8(out, *code);
    } else if (escape >= '0' && escape <= '7') {
      std::uint32_t code = static_cast<std::uint32_t>(escape - '0');
      for (int i = 0; i < 2 && !rest.empty() && rest[0] >= '0' && rest[0] <= '7'; ++i) {
        code = code * 8 + static_cast<std::uint32_t>(rest[0] - '0');
        rest.remove_prefix(1);
      }
      append_utf8(out, code);
    } else if (escape == 'N') {
      return std::nullopt;
    } else {
      out.push_back('\\');  // as Python: an unknown escape stays as it is
      out.push_back(escape);
    }
  }
  return out;
}

std::string quote(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char mark = has_single && !has_double ? '"' : '\'';
  std::string out(1, mark);
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == mark || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      static constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\x";
      out.push_back(kHex[byte >> 4U]);
      out.push_back(kHex[byte & 15U]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back(mark);
  return out;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  // The shortest digits that read back as the same number, as d.ddde[+-]xx.
  auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    std::chars_format::scientific);
  const std::string_view shortest(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = shortest.find('e');
  int exponent = 0;
  const char* exponent_text = shortest.data() + mark + 1;
  if (*exponent_text == '+') ++exponent_text;
  std::from_chars(exponent_text, end, exponent);
  // Python switches to scientific notation at the same exponents.
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  auto [fixed_end, fixed_error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  std::string fixed(buffer.data(), fixed_end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

}  // namespace assay::graph::python
