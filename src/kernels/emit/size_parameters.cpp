#include "kernels/emit/size_parameters.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "assay/error.h"

namespace assay::kernels {

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// The end of a word or number that starts at `at`: 1e-05f is one.
std::size_t end_of_word(std::string_view text, std::size_t at) {
  const bool is_number = is_digit(text[at]);
  std::size_t end = at;
  while (end < text.size()) {
    const char c = text[end];
    const bool is_sign = (c == '+' || c == '-') && is_number && text[end - (end > at)] == 'e';
    if (!is_word(c) && !(is_number && c == '.') && !is_sign) break;
    ++end;
  }
  return end;
}

bool is_float(const std::string& number) { return number.back() == 'f'; }

// Behind these stand alignments, and tests of bools: `x != 0` may compare a vector, which a
// variable of 64 bits would not fit.
bool is_before_constant(std::string_view text) {
  return text.ends_with("aligned(") || text.ends_with("!= ") || text.ends_with("== ") ||
         text.ends_with("& ");
}

// A whole number or a float, in a form that this file can read again.
bool is_parameter(std::string_view word) {
  if (word.starts_with("0x")) return false;
  if (word.back() == 'f') return word.find_first_not_of("0123456789.e+-f") == word.npos;
  return word.find_first_not_of("0123456789") == word.npos;
}

std::int64_t value_of(const std::string& number) {
  std::int64_t value = 0;
  if (is_float(number)) {
    const float read = std::strtof(number.c_str(), nullptr);
    std::memcpy(&value, &read, sizeof read);
    return value;
  }
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  internal_check(error == std::errc() && end == number.data() + number.size(),
                 "a kernel's numbers fit into 64 bits");
  return value;
}

}  // namespace

KernelOutline outline_of(std::string_view text) {
  KernelOutline result;
  int brackets = 0;
  bool is_initializer = false;  // i32x4{0, 1, 2, 3}
  for (std::size_t at = 0; at < text.size();) {
    if (!is_word(text[at])) {
      brackets += text[at] == '[' ? 1 : text[at] == ']' ? -1 : 0;
      if (text[at] == '{')
        is_initializer = !result.outline.empty() && is_word(result.outline.back());
      if (text[at] == '}') is_initializer = false;
      result.outline += text[at++];
      continue;
    }
    const std::size_t end = end_of_word(text, at);
    const std::string_view word = text.substr(at, end - at);
    if (is_digit(word[0]) && brackets == 0 && !is_initializer &&
        !is_before_constant(result.outline) && is_parameter(word)) {
      result.numbers.emplace_back(word);
      result.positions.push_back(result.outline.size());
      // A float and a whole number are not the same kernel.
      result.outline += is_float(result.numbers.back()) ? "#f" : "#";
    } else {
      result.outline += word;
    }
    at = end;
  }
  return result;
}

GeneralKernel::GeneralKernel(const KernelOutline& first, const KernelOutline& second,
                             std::size_t buffers)
    : numbers_(first.numbers), parameter_of_(first.numbers.size(), -1) {
  // Numbers that are equal in both are one parameter: it is in one register then.
  std::map<std::pair<std::string, std::string>, int> known;
  std::string declarations =
      "  const long* const sizes = (const long*)buffers[" + std::to_string(buffers) + "];\n";
  for (std::size_t k = 0; k < numbers_.size(); ++k) {
    if (first.numbers[k] == second.numbers[k]) continue;
    const auto [found, is_new] =
        known.try_emplace({first.numbers[k], second.numbers[k]}, static_cast<int>(known.size()));
    parameter_of_[k] = found->second;
    if (!is_new) continue;
    const std::string index = std::to_string(found->second);
    declarations += is_float(numbers_[k])
                        ? "  const float s" + index + " = *(const float*)(sizes + " + index + ");\n"
                        : "  const long s" + index + " = sizes[" + index + "];\n";
  }
  parameters_ = known.size();
  std::size_t from = 0;
  for (std::size_t k = 0; k < numbers_.size(); ++k) {
    text_ += first.outline.substr(from, first.positions[k] - from);
    from = first.positions[k] + (is_float(numbers_[k]) ? 2 : 1);
    text_ += parameter_of_[k] < 0 ? numbers_[k] : "s" + std::to_string(parameter_of_[k]);
  }
  text_ += first.outline.substr(from);
  text_.insert(text_.find("{\n") + 2, declarations);
}

std::optional<std::vector<std::int64_t>> GeneralKernel::values(const KernelOutline& other) const {
  std::vector<std::int64_t> values(parameters_);
  std::vector<const std::string*> given(parameters_);
  for (std::size_t k = 0; k < numbers_.size(); ++k) {
    if (parameter_of_[k] < 0) {
      if (other.numbers[k] != numbers_[k]) return std::nullopt;
      continue;
    }
    const auto parameter = static_cast<std::size_t>(parameter_of_[k]);
    if (given[parameter] != nullptr && *given[parameter] != other.numbers[k]) return std::nullopt;
    given[parameter] = &other.numbers[k];
    values[parameter] = value_of(other.numbers[k]);
  }
  return values;
}

}  // namespace assay::kernels
