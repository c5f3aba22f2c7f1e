#include "graph/stack_comments.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

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

}  // namespace

void StackComments::start_at(std::size_t offset) {
  next_ = static_cast<std::size_t>(
      std::ranges::lower_bound(comments_, offset, {}, &python::Comment::offset) -
      comments_.begin());
}

void StackComments::advance_to(std::size_t offset) {
  bool has_new_stack = false;
  for (; next_ < comments_.size() && comments_[next_].offset < offset; ++next_) {
    const std::string_view text = comments_[next_].text;
    if (text.starts_with("No stacktrace found")) {
      stack.clear();
      provenance.clear();
      has_new_stack = true;
    } else if (auto frame = stack_frame(text)) {
      if (!has_new_stack) {
        stack.clear();
        provenance.clear();
      }
      has_new_stack = true;
      stack.push_back(std::move(*frame));
    } else if (text.starts_with("From:")) {
      provenance = words(text.substr(5));
    }
  }
}

}  // namespace assay::graph
