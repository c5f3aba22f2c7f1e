#include "graph/python_names.h"

#include <algorithm>
#include <array>

namespace assay::graph {

namespace {

// Sorted, for binary search.
constexpr std::array<std::string_view, 35> kKeywords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
static_assert(std::ranges::is_sorted(kKeywords));

constexpr std::array<std::string_view, 14> kReserved = {
    "device", "dict",     "getattr", "inf",   "math",   "max",   "min",
    "nan",    "operator", "self",    "slice", "tensor", "torch", "tuple"};
static_assert(std::ranges::is_sorted(kReserved));

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_python_identifier(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return false;
  if (!std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); })) return false;
  return !std::ranges::binary_search(kKeywords, text);
}

bool is_reserved_name(std::string_view text) { return std::ranges::binary_search(kReserved, text); }

std::string python_identifier(std::string_view wish) {
  std::string name;
  name.reserve(wish.size());
  for (char c : wish) name.push_back(is_letter(c) || is_digit(c) ? c : '_');
  if (name.empty() || is_digit(name[0])) name.insert(0, "_");
  if (!is_python_identifier(name) || is_reserved_name(name)) name += "_1";
  return name;
}

}  // namespace assay::graph
