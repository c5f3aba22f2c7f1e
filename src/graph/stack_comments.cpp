#include "graph/stack_comments.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "graph/python_names.h"

namespace assay::graph {

namespace {

// `File: model.py:12 in forward, code: y = relu(x)`
std::optional<StackFrame> stack_frame(std::string_view text) {
  constexpr std::string_view kFile = "File: ";
  constexpr std::string_view kCode = ", code: ";
  constexpr std::string_view kIn = " in ";
  if (!text.starts_with(kFile)) return std::nullopt;
  text.remove_prefix(kFile.size());
  auto code = text.find(kCode);
  std::string_view place = text.substr(0, code);
  const auto in = place.rfind(kIn);
  if (in == std::string_view::npos) return std::nullopt;
  const std::string_view file_and_line = place.substr(0, in);
  const auto colon = file_and_line.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  StackFrame frame;
  frame.file = file_and_line.substr(0, colon);
  const std::string_view line = file_and_line.substr(colon + 1);
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), frame.line);
  if (error != std::errc() || end != line.data() + line.size()) return std::nullopt;
  frame.function = place.substr(in + kIn.size());
  if (code != std::string_view::npos) frame.text = text.substr(code + kCode.size());
  return frame;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  while (!text.empty()) {
    const auto begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    const auto end = std::min(text.find(' ', begin), text.size());
    found.emplace_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
  return found;
}

constexpr std::string_view kRange = "VR[";
constexpr std::string_view kNoBound = "int_oo";

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<std::int64_t> take_integer(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// One end of a range; without bound it is `none`.
std::optional<std::int64_t> take_bound(std::string_view& text, std::int64_t none) {
  if (take(text, none < 0 ? "-int_oo" : kNoBound)) return none;
  return take_integer(text);
}

// The inverse of `symbol_text`; nothing if the comment is another's.
std::optional<std::pair<std::string, SizeSymbol>> read_symbol(std::string_view text) {
  const std::string name(text.substr(0, text.find_first_of(" ,")));
  text.remove_prefix(name.size());
  SizeSymbol symbol;
  if (take(text, " = ")) {
    symbol.hint = take_integer(text);
    if (!symbol.hint) return std::nullopt;
  }
  if (!is_python_identifier(name) || !take(text, ", ") || !take(text, kRange)) return std::nullopt;
  const auto low = take_bound(text, INT64_MIN);
  const bool has_comma = take(text, ", ");
  const auto high = take_bound(text, INT64_MAX);
  if (!low || !high || !has_comma || text != "]") return std::nullopt;
  symbol.range = {*low, *high};
  return std::pair(name, symbol);
}

}  // namespace

std::string symbol_text(const std::string& name, const SizeSymbol& symbol) {
  const auto& [low, high] = symbol.range;
  std::string text = name;
  if (symbol.hint) text += " = " + std::to_string(*symbol.hint);
  text += ", " + std::string(kRange);
  text += low == INT64_MIN ? "-" + std::string(kNoBound) : std::to_string(low);
  text += ", " + (high == INT64_MAX ? std::string(kNoBound) : std::to_string(high));
  return text + "]";
}

bool is_tangent_name(std::string_view name) { return name.starts_with("tangents_"); }

void StackComments::start_at(std::size_t offset) {
  next_ = static_cast<std::size_t>(
      std::ranges::lower_bound(comments_, offset, {}, &python::Comment::offset) -
      comments_.begin());
}

void StackComments::advance_to(std::size_t offset) {
  bool has_new_stack = false;
  std::vector<StackFrame> frames;
  for (; next_ < comments_.size() && comments_[next_].offset < offset; ++next_) {
    std::string_view text = comments_[next_].text;
    if (text.starts_with("No stacktrace found")) {
      frames.clear();
      provenance = {};
      has_new_stack = true;
    } else if (auto frame = stack_frame(text)) {
      if (!has_new_stack) provenance = {};
      has_new_stack = true;
      frames.push_back(std::move(*frame));
    } else if (take(text, "From:")) {
      provenance = origins_.of(words(text));
    } else if (take(text, "Symbol: ")) {
      if (auto symbol = read_symbol(text)) symbols.insert(std::move(*symbol));
    } else if (take(text, "Tangents:")) {
      tangents = words(text);
    }
  }
  if (has_new_stack) stack = StackTrace(std::move(frames));
}

}  // namespace assay::graph
