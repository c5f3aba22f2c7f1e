#include "repro/graphs_in_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

#include "repro/lines.h"

namespace assay::repro {

namespace {

std::size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// How many brackets a line opens beyond those it closes, outside of strings and comments.
int brackets_left_open(std::string_view line) {
  int open = 0;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      break;
    } else if (c == '(' || c == '[' || c == '{') {
      ++open;
    } else if (c == ')' || c == ']' || c == '}') {
      --open;
    }
  }
  return open;
}

struct Header {
  std::size_t column;     // of what stands below it, less its indentation
  std::string_view text;  // without what stands before it
  bool has_body;
};

// `class GraphModule(torch.nn.Module):`, also behind the place that made it:
// ` /lib/torch/fx/_lazy_graph_module.py class <lambda>(torch.nn.Module):`.
std::optional<Header> class_header(std::string_view line) {
  const auto last = line.find_last_not_of(" \t\r");
  if (last == std::string_view::npos) return std::nullopt;
  const std::string_view trimmed = line.substr(0, last + 1);
  const auto at = trimmed.find("class ");
  if (at == std::string_view::npos || !trimmed.ends_with("):")) return std::nullopt;
  const std::size_t column = indentation(line);
  const std::string_view before = trimmed.substr(column, at - column);
  const bool is_made_there = before.find('/') != std::string_view::npos ||
                             before.find("<eval_with_key>") != std::string_view::npos;
  const bool is_module = trimmed.ends_with("Module):") || trimmed.ends_with("_helper):");
  if (!is_module || !(before.empty() || is_made_there)) return std::nullopt;
  return Header{column, trimmed.substr(at), true};
}

// The lines that belong to a program: its graph, and what says which inputs it has.
std::optional<Header> header(std::string_view line) {
  if (auto found = class_header(line)) return found;
  const std::size_t column = indentation(line);
  const std::string_view rest = line.substr(column);
  for (const std::string_view function : {"def forward(", "def load_args("}) {
    if (rest.starts_with(function)) return Header{column, rest, true};
  }
  for (const std::string_view statement :
       {"mod = ", "args = [", "args.append(", "args += [", "import torch"}) {
    if (rest.starts_with(statement)) return Header{column, rest, false};
  }
  return std::nullopt;
}

std::string blocks_of(const std::vector<std::string_view>& lines) {
  std::string made;
  std::optional<Header> block;
  int open = 0;
  for (const std::string_view line : lines) {
    const bool goes_on = block && (open > 0 || is_blank(line) ||
                                   (block->has_body && indentation(line) > block->column));
    if (goes_on) {
      made += line.substr(std::min(line.size(), std::min(indentation(line), block->column)));
    } else {
      block = header(line);
      open = 0;
      if (block) made += block->text;
    }
    if (block) open = std::max(0, open + brackets_left_open(line));
    made += '\n';
  }
  return made;
}

// The text between each pair of lines that begin with ```; an indented fence is one, too.
std::vector<std::string> fenced_blocks(const std::vector<std::string_view>& lines) {
  std::vector<std::string> blocks;
  std::optional<std::size_t> begin;
  for (std::size_t i = 0; i <= lines.size(); ++i) {
    const bool is_fence =
        i == lines.size() || lines[i].substr(indentation(lines[i])).starts_with("```");
    if (!is_fence) continue;
    if (!begin) {
      begin = i + 1;
      continue;
    }
    std::string block(*begin, '\n');
    for (std::size_t j = *begin; j < i; ++j) block.append(lines[j]) += '\n';
    blocks.push_back(std::move(block));
    begin.reset();
  }
  return blocks;
}

// AOTInductor's repros load an exported program, and show its graph in comments:
// `# class Repro(torch.nn.Module):`, each on the lines where it is.
std::vector<std::string> commented_graphs(const std::vector<std::string_view>& lines) {
  constexpr std::string_view kClass = "# class ";
  std::vector<std::string> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with(kClass) || !class_header(lines[i].substr(2))) continue;
    std::string text(i, '\n');
    for (; i < lines.size() && (is_blank(lines[i]) || lines[i].starts_with("#")); ++i) {
      const bool is_text = lines[i].starts_with("# ") && !lines[i].starts_with("# torch ");
      if (is_text) text += lines[i].substr(2);
      text += '\n';
    }
    found.push_back(std::move(text));
  }
  return found;
}

}  // namespace

std::vector<std::string> graphs_in_text(const std::string& text) {
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<std::string> found = fenced_blocks(lines);
  std::ranges::reverse(found);
  found.push_back(blocks_of(lines));
  std::ranges::move(commented_graphs(lines), std::back_inserter(found));
  return found;
}

}  // namespace assay::repro
