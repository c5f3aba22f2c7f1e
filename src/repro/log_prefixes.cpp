#include "repro/log_prefixes.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace assay::repro {

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// `I0521 09:32:52.155000 2240152 torch/_dynamo/output_graph.py:202] [0/0] [__graph_code] text`, or
// `V1030 ...`: since PyTorch 2.3. The length of the prefix with the space behind it, or 0.
std::size_t new_prefix(std::string_view line) {
  const bool begins = line.size() > 6 && std::string_view("VDIWEC").find(line[0]) != line.npos &&
                      std::all_of(line.begin() + 1, line.begin() + 5, is_digit) && line[5] == ' ';
  if (!begins) return 0;
  std::size_t at = line.find("] ");
  if (at == std::string_view::npos) return line.ends_with(']') ? line.size() : 0;
  at += 2;
  // `[0/0]`, `[rank0]:`, `[__graph_code]`: the last bracketed word is the name of the log.
  while (at < line.size() && line[at] == '[') {
    const auto close = line.find(']', at);
    if (close == std::string_view::npos) return 0;
    at = close + 1;
    if (at < line.size() && line[at] == ':') ++at;
    if (at < line.size() && line[at] == ' ') ++at;
  }
  return at;
}

// `[2024-04-30 17:13:04,191] [0/0] torch._dynamo.output_graph.__graph_code: [DEBUG] text`.
std::size_t old_prefix(std::string_view line) {
  const bool begins = line.size() > 6 && line[0] == '[' &&
                      std::all_of(line.begin() + 1, line.begin() + 5, is_digit) && line[5] == '-';
  if (!begins) return 0;
  for (const std::string_view level : {"[DEBUG]", "[INFO]", "[WARNING]", "[ERROR]"}) {
    auto at = line.find(level);
    if (at == std::string_view::npos) continue;
    at += level.size();
    return at < line.size() && line[at] == ' ' ? at + 1 : at;
  }
  return 0;
}

// `[__graph_code] text`: the format that notebooks and set_logs() leave.
std::size_t name_prefix(std::string_view line) {
  if (!line.starts_with("[__")) return 0;
  const auto close = line.find(']');
  if (close == std::string_view::npos) return 0;
  return close + 1 < line.size() && line[close + 1] == ' ' ? close + 2 : close + 1;
}

// `[rank0]:` in front of all that, which torchrun adds.
std::size_t rank_prefix(std::string_view line) {
  if (!line.starts_with("[rank")) return 0;
  const auto close = line.find("]:");
  return close == std::string_view::npos ? 0 : close + 2;
}

// ` /usr/lib/.../_lazy_graph_module.py class GraphModule(torch.nn.Module):` without the path.
std::string_view graph_line(std::string_view rest) {
  const auto at = rest.find("class ");
  if (at == std::string_view::npos || !rest.ends_with("Module):")) return rest;
  const std::string_view before = rest.substr(0, at);
  const bool is_path = before.find('/') != std::string_view::npos ||
                       before.find("<eval_with_key>") != std::string_view::npos;
  return is_path ? rest.substr(at) : rest;
}

bool is_banner(std::string_view rest) {
  return rest.starts_with("TRACED GRAPH") || rest.find("=====") != std::string_view::npos;
}

}  // namespace

void strip_log_prefixes(std::string& text) {
  std::string stripped;
  bool found = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto newline = text.find('\n', begin);
    const std::size_t end = newline == std::string::npos ? text.size() : newline;
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::size_t rank = rank_prefix(line);
    const std::string_view logged = line.substr(rank);
    std::size_t prefix = new_prefix(logged);
    if (prefix == 0) prefix = old_prefix(logged);
    if (prefix == 0) prefix = name_prefix(logged);
    if (prefix != 0) prefix += rank;
    if (prefix != 0) {
      found = true;
      line = graph_line(line.substr(prefix));
      if (is_banner(line)) line = {};
    }
    stripped += line;
    if (newline != std::string::npos) stripped += '\n';
    begin = end + 1;
  }
  if (found) text = std::move(stripped);
}

}  // namespace assay::repro
