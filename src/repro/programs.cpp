#include "repro/programs.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace assay::repro {

namespace {

using graph::python::Module;
using graph::python::Source;
using graph::python::Statement;

constexpr int kMaxSkipped = 16;

std::size_t line_begin(const std::string& text, std::size_t line) {
  std::size_t begin = 0;
  for (std::size_t i = 1; i < line && begin < text.size(); ++i) {
    const auto end = text.find('\n', begin);
    if (end == std::string::npos) return text.size();
    begin = end + 1;
  }
  return begin;
}

// A line at which a statement of the file begins: not indented, and not the rest of a bracket.
bool begins_statement(const std::string& text, std::size_t begin) {
  constexpr std::string_view kContinues = " \t\r\n#)]}";
  return begin < text.size() && kContinues.find(text[begin]) == std::string_view::npos;
}

struct Extent {
  std::size_t begin;
  std::size_t end;
};

// The statement around a line.
Extent statement_around(const std::string& text, std::size_t at) {
  Extent found{at, at};
  while (found.begin > 0 && !begins_statement(text, found.begin)) {
    const auto before = text.rfind('\n', found.begin - 1);
    const auto previous =
        before == std::string::npos || before == 0 ? 0 : text.rfind('\n', before - 1) + 1;
    found.begin = before == std::string::npos ? 0 : previous;
  }
  found.end = text.find('\n', at);
  while (found.end != std::string::npos && found.end + 1 < text.size() &&
         !begins_statement(text, found.end + 1)) {
    found.end = text.find('\n', found.end + 1);
  }
  if (found.end == std::string::npos) found.end = text.size();
  return found;
}

// The graph and its inputs must be read whole.
bool is_essential(std::string_view statement) {
  return statement.starts_with("class ") || statement.starts_with("def load_args") ||
         statement.starts_with("args");
}

bool has_forward(const Statement& definition) {
  return definition.kind == Statement::Kind::class_def &&
         std::ranges::any_of(definition.body, [](const Statement& inner) {
           return inner.kind == Statement::Kind::function && inner.name == "forward";
         });
}

// A class that the text behind uses without defining it again: a subgraph of the graph there.
bool is_used_behind(const std::string& name, std::string_view behind) {
  return behind.find(name + "(") != std::string_view::npos &&
         behind.find("class " + name) == std::string_view::npos;
}

}  // namespace

Recovered parse_what_can_be_read(Source& source) {
  Recovered recovered;
  for (int skipped = 0;; ++skipped) {
    try {
      recovered.module = graph::python::parse_module(source);
      return recovered;
    } catch (const UserError& error) {
      if (!recovered.first_error) recovered.first_error = error;
      const std::size_t line = error.detail().where.line;
      if (line == 0 || skipped == kMaxSkipped) throw *recovered.first_error;
      std::string& text = source.text;
      const Extent extent = statement_around(text, line_begin(text, line));
      const std::string_view statement =
          std::string_view(text).substr(extent.begin, extent.end - extent.begin);
      const bool is_blank = statement.find_first_not_of(" \t\r\n") == std::string_view::npos;
      if (is_blank || is_essential(statement)) throw *recovered.first_error;
      const auto first_line =
          1 +
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(extent.begin), '\n');
      recovered.notes.push_back("line " + std::to_string(first_line) +
                                " is not Python and was skipped: " + error.detail().message);
      for (std::size_t i = extent.begin; i < extent.end; ++i) {
        if (text[i] != '\n') text[i] = ' ';
      }
    }
  }
}

std::vector<Module> split_programs(Module& module, const Source& source) {
  std::vector<std::size_t> begins = {0};
  std::vector<std::string> graphs;  // of the program so far
  for (std::size_t i = 0; i < module.statements.size(); ++i) {
    const Statement& statement = module.statements[i];
    const std::string_view text =
        std::string_view(source.text).substr(statement.offset, statement.end - statement.offset);
    const std::string_view behind = std::string_view(source.text).substr(statement.end);
    if (statement.kind == Statement::Kind::import && text == "import torch" && !graphs.empty() &&
        std::ranges::none_of(graphs,
                             [&](const auto& name) { return is_used_behind(name, behind); })) {
      begins.push_back(i);
      graphs.clear();
    }
    if (has_forward(statement)) graphs.push_back(std::string(statement.name));
  }
  // What follows the last graph belongs to nothing.
  if (begins.size() > 1 && graphs.empty()) begins.pop_back();
  std::vector<Module> programs;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : module.statements.size();
    Module& program = programs.emplace_back();
    program.comments = module.comments;
    const auto at = [&](std::size_t index) {
      return std::make_move_iterator(module.statements.begin() +
                                     static_cast<std::ptrdiff_t>(index));
    };
    program.statements.assign(at(begins[i]), at(end));
  }
  return programs;
}

}  // namespace assay::repro
