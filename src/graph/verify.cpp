#include "graph/verify.h"

#include <algorithm>
#include <unordered_set>

#include "graph/print.h"
#include "graph/python_names.h"

namespace assay::graph {

namespace {

// Each part between dots is an identifier, or for attribute paths also a number.
bool is_dotted_name(std::string_view text, bool allow_numbers) {
  if (text.empty()) return false;
  while (true) {
    const auto dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    const bool is_number =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_python_identifier(part) && !(allow_numbers && is_number)) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

class Verifier {
 public:
  Verifier(const Graph& graph, const VerifyOptions& options) : graph_(graph), options_(options) {}

  std::vector<std::string> run() {
    if (!is_python_identifier(graph_.name())) add("the class name is not an identifier");
    symbols();
    attributes();
    for (const Node& node : graph_.nodes()) {
      node_ = &node;
      name();
      order();
      inputs();
      sizes();
      target();
      metadata();
      if (node.is_call() && options_.check_call) {
        if (auto problem = options_.check_call(node)) add(*problem);
      }
      defined_.insert(&node);
    }
    node_ = nullptr;
    if (graph_.output() == nullptr) add("the graph has no output");
    users();
    return std::move(problems_);
  }

 private:
  void add(const std::string& problem) {
    const std::string where = node_ == nullptr ? "" : "node '" + node_->name() + "': ";
    problems_.push_back(where + problem);
  }

  void symbols() {
    for (const auto& [name, symbol] : graph_.symbols()) {
      if (!is_python_identifier(name)) add("the size symbol '" + name + "' is not a name");
      if (symbol.range.is_empty()) add("the range of the size symbol '" + name + "' is empty");
      if (symbol.hint && !symbol.range.contains(*symbol.hint)) {
        add("the hint of the size symbol '" + name + "' is not in its range");
      }
    }
  }

  void attributes() {
    std::unordered_set<std::string> names;
    std::unordered_set<std::string> classes = {graph_.name()};
    for (const Attribute& attribute : graph_.attributes()) {
      if (!is_dotted_name(attribute.name, true)) {
        add("the attribute '" + attribute.name + "' is not a name");
      }
      if (!names.insert(attribute.name).second) {
        add("two attributes are called '" + attribute.name + "'");
      }
      if (const Graph* subgraph = attribute.subgraph()) {
        if (!classes.insert(subgraph->name()).second) {
          add("two subgraphs have the class name '" + subgraph->name() + "'");
        }
        for (const std::string& problem : find_problems(*subgraph, options_)) {
          add("in subgraph '" + attribute.name + "': " + problem);
        }
      }
    }
  }

  void name() {
    if (!is_python_identifier(node_->name())) add("its name is not an identifier");
    if (is_reserved_name(node_->name())) add("its name is reserved");
    if (!names_.insert(node_->name()).second) add("another node has this name");
  }

  void order() {
    const bool is_placeholder = node_->op() == Op::placeholder;
    if (is_placeholder && has_left_placeholders_) add("a placeholder follows other nodes");
    has_left_placeholders_ |= !is_placeholder;
    if (has_output_) add("it follows the output");
    has_output_ |= node_->op() == Op::output;
  }

  void inputs() {
    node_->for_each_input([&](const Node& input) {
      if (!defined_.contains(&input)) {
        // Only the address is known to be safe: the node may belong to no graph any more.
        const auto same = [&](const Node& node) { return &node == &input; };
        const bool is_ours = std::ranges::any_of(graph_.nodes(), same);
        add(is_ours ? "it uses '" + input.name() + "' before its definition"
                    : "it uses a node that is not in the graph");
      }
    });
  }

  // In the text a size is known by its symbols, which must not be taken for values.
  void sizes() {
    const auto check = [&](const std::string& symbol) {
      if (!graph_.symbols().contains(symbol)) {
        add("the graph does not declare the size symbol '" + symbol + "'");
      } else if (graph_.find(symbol) != nullptr) {
        add("the size symbol '" + symbol + "' is also a node: use the node as argument");
      }
    };
    const auto check_argument = [&](const Argument& argument) {
      argument.for_each_size([&](const SizeExpr& size) { size.for_each_symbol(check); });
    };
    for (const Argument& argument : node_->args()) check_argument(argument);
    for (const NamedArgument& argument : node_->kwargs()) check_argument(argument.value);
  }

  void target() {
    const std::string& target = node_->target().name();
    switch (node_->op()) {
      case Op::call_function:
      case Op::placeholder:
        if (!is_dotted_name(target, false)) add("its target '" + target + "' is not a name");
        break;
      case Op::call_method:
        if (!is_python_identifier(target)) add("its method '" + target + "' is not a name");
        if (node_->args().empty()) add("a method call needs its object as first argument");
        break;
      case Op::get_attr:
      case Op::call_module:
        if (graph_.attribute(target) == nullptr) add("the graph has no attribute '" + target + "'");
        break;
      case Op::output:
        if (node_->args().size() != 1) add("the output takes one argument");
        break;
    }
    for (const NamedArgument& argument : node_->kwargs()) {
      if (!is_python_identifier(argument.name)) {
        add("the keyword '" + argument.name + "' is not a name");
      }
    }
  }

  void metadata() {
    const ValueMeta& value = node_->meta.value;
    if (const TensorMeta* tensor = value.tensor()) {
      if (tensor->sizes.size() != tensor->strides.size()) {
        add("its metadata has " + std::to_string(tensor->sizes.size()) + " sizes but " +
            std::to_string(tensor->strides.size()) + " strides");
      }
    }
    if (node_->meta.role != InputRole::ordinary && node_->op() != Op::placeholder) {
      add("it has the role of an input but is not a placeholder");
    }
    const bool has_value = node_->is_call() || node_->op() == Op::placeholder;
    if (options_.require_metadata && has_value && !value.known()) add("it has no metadata");
  }

  // Every mention is in the mentioned node's users, and nothing else is.
  void users() {
    std::unordered_map<const Node*, std::size_t> mentions;
    for (const Node& node : graph_.nodes()) {
      node.for_each_input([&](const Node& input) { ++mentions[&input]; });
    }
    for (const Node& node : graph_.nodes()) {
      if (mentions[&node] != node.users().size()) {
        add("node '" + node.name() + "' has " + std::to_string(node.users().size()) +
            " users on record but is mentioned " + std::to_string(mentions[&node]) + " times");
      }
    }
  }

  const Graph& graph_;
  const VerifyOptions& options_;
  const Node* node_ = nullptr;
  std::vector<std::string> problems_;
  std::unordered_set<std::string_view> names_;
  std::unordered_set<const Node*> defined_;
  bool has_left_placeholders_ = false;
  bool has_output_ = false;
};

}  // namespace

std::vector<std::string> find_problems(const Graph& graph, const VerifyOptions& options) {
  return Verifier(graph, options).run();
}

}  // namespace assay::graph
