#include "repro/graph_listing.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

#include "aten/torch_functions.h"
#include "graph/python_operators.h"
#include "repro/lines.h"

namespace assay::repro {

namespace {

using Lines = std::vector<std::string_view>;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_identifier(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::ranges::all_of(text, is_word);
}

bool is_dotted(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_word(c) || c == '.'; });
}

// Where the bracket that opens at `open` closes, or npos.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

// The items of `a, (b, c), d`. FX joins with a comma and a space; an equation of einsum has no
// space.
std::vector<std::string_view> items_of(std::string_view text) {
  std::vector<std::string_view> items;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0 && (i + 1 == text.size() || text[i + 1] == ' ')) {
      items.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  const std::string_view last = trimmed(text.substr(begin));
  if (!last.empty()) items.push_back(last);
  return items;
}

// ---- values: listings print strings without quotes, and nodes with a % ----

bool is_number(std::string_view text) {
  if (text.starts_with("-")) text.remove_prefix(1);
  if (text == "inf" || text == "nan") return true;
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 ||
                           (text[0] == '.' && text.size() > 1));
}

// `cuda:0` as device(type='cuda', index=0).
std::optional<std::string> device_of(std::string_view text) {
  constexpr std::array<std::string_view, 8> kTypes = {"cpu", "cuda", "xpu", "hpu",
                                                      "npu", "mps",  "xla", "meta"};
  const auto colon = text.find(':');
  if (std::ranges::find(kTypes, text.substr(0, colon)) == kTypes.end()) return std::nullopt;
  std::string device = "device(type='" + std::string(text.substr(0, colon)) + "'";
  if (colon != std::string_view::npos) device += ", index=" + std::string(text.substr(colon + 1));
  return device + ")";
}

std::string quoted(std::string_view text) {
  std::string made = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') made += '\\';
    made += c;
  }
  return made + "'";
}

std::string value_of(std::string_view text, bool bare_names_are_nodes = false);

std::string joined(std::string_view inner, bool bare_names_are_nodes) {
  std::string made;
  for (const std::string_view item : items_of(inner)) {
    if (!made.empty()) made += ", ";
    made += value_of(item, bare_names_are_nodes);
  }
  return made;
}

std::string dict_of(std::string_view inner) {
  std::string made;
  for (const std::string_view item : items_of(inner)) {
    const auto colon = item.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view key = item.substr(0, colon);
    if (!made.empty()) made += ", ";
    made += key.starts_with("'") ? std::string(key) : quoted(key);
    made += ": " + value_of(item.substr(colon + 2));
  }
  return "{" + made + "}";
}

std::string value_of(std::string_view text, bool bare_names_are_nodes) {
  const auto inside = [&](std::size_t open) {
    return text.substr(open + 1, text.size() - open - 2);
  };
  if (text.starts_with("%")) return std::string(text.substr(1));
  if (text.starts_with("(")) {
    const std::string inner = joined(inside(0), bare_names_are_nodes);
    return items_of(inside(0)).size() == 1 ? "(" + inner + ",)" : "(" + inner + ")";
  }
  if (text.starts_with("[")) return "[" + joined(inside(0), bare_names_are_nodes) + "]";
  if (text.starts_with("{")) return dict_of(inside(0));
  if (text.starts_with("slice(")) return "slice(" + joined(inside(5), true) + ")";
  constexpr std::array<std::string_view, 5> kConstants = {"None", "True", "False", "Ellipsis",
                                                          "..."};
  if (std::ranges::find(kConstants, text) != kConstants.end()) {
    return text == "Ellipsis" ? "..." : std::string(text);
  }
  const bool is_literal = text.starts_with("'") || text.starts_with("torch.") ||
                          text.starts_with("device(") || is_number(text);
  if (is_literal || (bare_names_are_nodes && is_identifier(text))) return std::string(text);
  if (auto device = device_of(text)) return *device;
  return quoted(text);
}

// ---- targets ----

// self.layer1.0.conv
std::string attribute_path(std::string_view target) {
  std::string path = "self";
  for (std::size_t begin = 0; begin <= target.size();) {
    const std::size_t end = std::min(target.find('.', begin), target.size());
    const std::string part(target.substr(begin, end - begin));
    path = is_identifier(part) ? path + "." + part : "getattr(" + path + ", \"" + part + "\")";
    begin = end + 1;
  }
  return path;
}

// The word behind a prefix, up to what ends it.
std::optional<std::string> named(std::string_view target, std::string_view prefix,
                                 std::string_view end) {
  if (!target.starts_with(prefix)) return std::nullopt;
  const auto stop = target.find(end, prefix.size());
  if (stop == std::string_view::npos) return std::nullopt;
  return std::string(target.substr(prefix.size(), stop - prefix.size()));
}

std::string function_of(std::string_view target) {
  const auto first_known = [](const std::string& name, std::initializer_list<const char*> modules) {
    for (const char* module : modules) {
      if (aten::find_torch_function(module + name) != nullptr) return module + name;
    }
    return *(modules.end() - 1) + name;
  };
  if (const auto name = named(target, "<built-in function ", ">")) {
    const std::string in_operator = "operator." + *name;
    const bool is_operator = graph::operator_of_function(in_operator) != nullptr ||
                             *name == "getitem" || *name == "setitem";
    if (is_operator) return in_operator;
    return *name == "getattr" ? *name : "torch._C._nn." + *name;
  }
  if (const auto name = named(target, "<built-in method ", " of ")) return "torch." + *name;
  if (const auto name = named(target, "<method '", "'")) return "torch.Tensor." + *name;
  if (const auto name = named(target, "<function ", " at ")) {
    return first_known(*name, {"torch.functional.", "torch.nn.functional."});
  }
  std::string name(target);
  if (name.starts_with("_operator.")) name.erase(0, 1);
  // An operator prints itself as aten.add.Tensor.
  const bool is_plain = is_dotted(name) && std::ranges::count(name, '.') == 2;
  constexpr std::array<std::string_view, 4> kModules = {"torch.", "operator.", "math.",
                                                        "builtins."};
  const bool is_qualified = std::ranges::any_of(
      kModules, [&](std::string_view module) { return name.starts_with(module); });
  return is_plain && !is_qualified ? "torch.ops." + name : name;
}

struct Call {
  std::string_view opcode;
  std::string_view target;
  std::vector<std::string> args;
  std::vector<std::string> keywords;  // `dim=0`
};

std::optional<std::string> expression_of(const Call& call) {
  if (call.opcode == "get_attr") return attribute_path(call.target);
  std::vector<std::string> operands = call.args;
  std::string callee;
  if (call.opcode == "call_function") {
    callee = function_of(call.target);
  } else if (call.opcode == "call_module") {
    callee = attribute_path(call.target);
  } else if (call.opcode == "call_method" && !operands.empty()) {
    callee = operands[0] + "." + std::string(call.target);
    operands.erase(operands.begin());
  } else {
    return std::nullopt;
  }
  operands.insert(operands.end(), call.keywords.begin(), call.keywords.end());
  std::string text;
  for (const std::string& operand : operands) text += (text.empty() ? "" : ", ") + operand;
  return callee + "(" + text + ")";
}

// A listing that is being read. What it stands for has its lines.
class Listing {
 public:
  explicit Listing(std::size_t lines, std::size_t header) : lines_(lines), header_(header) {}

  void placeholder(std::string_view name) { parameters_ += ", " + std::string(name); }
  void node(std::size_t line, std::string_view name, const std::string& expression) {
    lines_[line] = "    " + std::string(name) + " = " + expression;
  }
  std::string finish(std::size_t line, const std::string& result) {
    lines_[line] = "    return " + result;
    lines_[header_] = "def forward(self" + parameters_ + "):";
    std::string text;
    for (const std::string& each : lines_) text += each + "\n";
    return text;
  }

 private:
  std::vector<std::string> lines_;
  std::size_t header_;
  std::string parameters_;
};

// ---- print(graph) ----

// `graph():`, once also with the inputs' names in the brackets.
bool is_listing_header(std::string_view line) {
  const std::string_view text = trimmed(line);
  const auto at = text.rfind("graph(");
  return at != std::string_view::npos && text.ends_with("):") && (at == 0 || text[at - 1] == ' ');
}

// `%sin : [num_users=1] = call_function[target=torch.sin](args = (%x,), kwargs = {})`
bool read_node(std::string_view line, std::size_t number, Listing& listing) {
  std::string_view text = trimmed(line);
  if (!text.starts_with("%")) return false;
  const auto colon = text.find(" :");
  const auto equals = text.find("= ", colon == std::string_view::npos ? 0 : text.find("users="));
  if (colon == std::string_view::npos || equals == std::string_view::npos) return false;
  const std::string_view name = text.substr(1, colon - 1);
  text = trimmed(text.substr(equals + 2));
  const auto bracket = text.find("[target=");
  if (!is_identifier(name) || bracket == std::string_view::npos) return false;
  Call call;
  call.opcode = text.substr(0, bracket);
  if (call.opcode == "placeholder") {
    listing.placeholder(name);
    return true;
  }
  const auto args = text.find("](args = (");
  const auto end = args == std::string_view::npos ? text.rfind(']') : args;
  if (end == std::string_view::npos || end < bracket) return false;
  call.target = text.substr(bracket + 8, end - bracket - 8);
  if (args != std::string_view::npos) {
    const auto open = args + 9;
    const auto close = closing(text, open);
    if (close == std::string_view::npos) return false;
    for (const std::string_view item : items_of(text.substr(open + 1, close - open - 1))) {
      call.args.push_back(value_of(item));
    }
    const auto braces = text.find("kwargs = {", close);
    const auto last = braces == std::string_view::npos ? braces : closing(text, braces + 9);
    if (last == std::string_view::npos) return false;
    for (const std::string_view item : items_of(text.substr(braces + 10, last - braces - 10))) {
      const auto separator = item.find(": ");
      if (separator == std::string_view::npos) return false;
      call.keywords.push_back(std::string(item.substr(0, separator)) + "=" +
                              value_of(item.substr(separator + 2)));
    }
  }
  const auto expression = expression_of(call);
  if (expression) listing.node(number, name, *expression);
  return expression.has_value();
}

std::optional<std::string> read_listing(const Lines& lines, std::size_t header) {
  Listing listing(lines.size(), header);
  for (std::size_t i = header + 1; i < lines.size(); ++i) {
    const std::string_view text = trimmed(lines[i]);
    if (text.empty()) continue;
    if (text.starts_with("return ")) return listing.finish(i, value_of(text.substr(7), true));
    if (!read_node(text, i, listing)) return std::nullopt;
  }
  return std::nullopt;
}

// ---- graph.print_tabular() ----

bool is_table_header(std::string_view line) {
  constexpr std::array<std::string_view, 5> kColumns = {"opcode", "name", "target", "args",
                                                        "kwargs"};
  std::size_t at = 0;
  for (const std::string_view column : kColumns) {
    at = line.find(column, at);
    if (at == std::string_view::npos) return false;
    at += column.size();
  }
  return trimmed(line.substr(at)).empty();
}

// The columns, from the line of dashes below the header.
std::vector<std::size_t> columns_of(std::string_view dashes) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < dashes.size(); ++i) {
    if (dashes[i] == '-' && (i == 0 || dashes[i - 1] == ' ')) begins.push_back(i);
    if (dashes[i] != '-' && dashes[i] != ' ' && dashes[i] != '\r') return {};
  }
  return begins;
}

std::optional<std::string> read_table(const Lines& lines, std::size_t header) {
  if (header + 1 >= lines.size()) return std::nullopt;
  const std::vector<std::size_t> columns = columns_of(lines[header + 1]);
  if (columns.size() != 5) return std::nullopt;
  Listing listing(lines.size(), header);
  for (std::size_t i = header + 2; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const auto cell = [&](std::size_t column) {
      const std::size_t begin = std::min(columns[column], line.size());
      const std::size_t end = column + 1 < columns.size() ? columns[column + 1] : line.size();
      return trimmed(line.substr(begin, std::max(begin, end) - begin));
    };
    const std::string_view args = cell(3);
    if (!args.starts_with("(") || !args.ends_with(")")) return std::nullopt;
    const auto operands = items_of(args.substr(1, args.size() - 2));
    Call call{cell(0), cell(2), {}, {}};
    if (call.opcode == "output") {
      if (operands.size() != 1) return std::nullopt;
      return listing.finish(i, std::string(operands[0]));
    }
    if (!is_identifier(cell(1))) return std::nullopt;
    if (call.opcode == "placeholder") {
      listing.placeholder(cell(1));
      continue;
    }
    call.args.assign(operands.begin(), operands.end());
    const std::string_view keywords = cell(4);
    if (!keywords.starts_with("{") || !keywords.ends_with("}")) return std::nullopt;
    for (const std::string_view item : items_of(keywords.substr(1, keywords.size() - 2))) {
      const auto key = named(item, "'", "': ");
      if (!key) return std::nullopt;
      call.keywords.push_back(*key + "=" + std::string(item.substr(key->size() + 4)));
    }
    const auto expression = expression_of(call);
    if (!expression) return std::nullopt;
    listing.node(i, cell(1), *expression);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> graphs_in_listings(const std::string& text) {
  const Lines lines = lines_of(text);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::optional<std::string> graph;
    if (is_listing_header(lines[i])) graph = read_listing(lines, i);
    if (is_table_header(lines[i])) graph = read_table(lines, i);
    if (graph) found.push_back(std::move(*graph));
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace assay::repro
