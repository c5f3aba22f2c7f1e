#include "graph/forward_syntax.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "assay/error.h"
#include "graph/annotation.h"
#include "graph/attribute_syntax.h"
#include "graph/constant_syntax.h"
#include "graph/parse.h"
#include "graph/python_operators.h"
#include "graph/stack_comments.h"

namespace assay::graph {

namespace {

using python::Expression;
using python::Source;
using python::Statement;
using Kind = Expression::Kind;
using Form = PythonOperator::Form;

// FX prints the standard library's module by its private name.
std::string canonical_function(std::string name) {
  constexpr std::string_view kPrivate = "_operator.";
  if (name.starts_with(kPrivate)) return "operator." + name.substr(kPrivate.size());
  return name;
}

// Builds the graph of one class's forward().
class ForwardReader {
 public:
  ForwardReader(const Source& source, const std::vector<python::Comment>& comments, Graph& graph,
                ForwardContext context)
      : source_(source),
        comments_(comments),
        graph_(graph),
        constants_(std::move(context.constants)),
        has_constructor_(context.has_constructor) {}

  void read(const Statement& forward) {
    comments_.start_at(forward.offset);
    comments_.advance_to(forward.body.empty() ? forward.end : forward.body[0].offset);
    graph_.symbols() = comments_.symbols;
    parameters(forward);
    for (std::size_t i = 0; i < forward.body.size(); ++i) {
      const Statement& current = forward.body[i];
      if (graph_.output() != nullptr) {
        throw error(current, "unexpected statement after the return");
      }
      comments_.advance_to(current.offset);
      statement_offset_ = current.offset;
      const Statement* next = i + 1 < forward.body.size() ? &forward.body[i + 1] : nullptr;
      if (is_in_place(current)) {
        if (in_place(current, next)) ++i;
      } else {
        statement(current);
      }
    }
    if (graph_.output() == nullptr) {
      throw source_.error(forward.end, 1, "forward() has no return statement",
                          "the file looks cut off: expected 'return (...)'");
    }
    check_outside_names();
  }

 private:
  UserError error(const Expression& at, const std::string& message,
                  const std::string& hint = {}) const {
    return source_.error(at.offset, at.end - at.offset, message, hint);
  }
  UserError error(const Statement& at, const std::string& message,
                  const std::string& hint = {}) const {
    return source_.error(at.offset, at.end - at.offset, message, hint);
  }

  // A name from outside must stay one when the graph is printed: a call without a variable is given
  // one then, which may be this name.
  void check_outside_names() const {
    for (const Expression* name : outside_names_) {
      const std::string root(root_name(*name));
      if (graph_.find(root) == nullptr) continue;
      throw error(*name, "'" + root + "' is not a value at this point of forward()",
                  "assign the result of the call to a variable");
    }
  }

  void parameters(const Statement& forward) {
    if (forward.parameters.empty() || forward.parameters[0].name != "self") {
      throw source_.error(forward.offset, 3, "expected 'self' as the first parameter of forward()");
    }
    for (const Statement::Parameter& parameter : forward.parameters) {
      constants_.erase(std::string(parameter.name));
    }
    for (std::size_t i = 1; i < forward.parameters.size(); ++i) {
      const Statement::Parameter& parameter = forward.parameters[i];
      if (values_.contains(parameter.name)) {
        throw source_.error(parameter.offset, parameter.name.size(),
                            "duplicate parameter '" + std::string(parameter.name) + "'");
      }
      Node& node = graph_.placeholder(parameter.name, std::string(parameter.name));
      annotate(node, parameter.annotation);
      if (is_tangent(parameter.name)) node.meta.role = InputRole::tangent;
      if (parameter.default_value != nullptr) {
        node.set_arguments({constant_from_syntax(source_, *parameter.default_value)});
      }
      values_[parameter.name] = &node;
    }
  }

  bool is_tangent(std::string_view parameter) const {
    if (!comments_.tangents) return is_tangent_name(parameter);
    return std::ranges::find(*comments_.tangents, parameter) != comments_.tangents->end();
  }

  // `"f32[2, 3]"`, and f32[2, 3] or Sym(s0) as PyTorch 2.0 logs them.
  std::optional<ValueMeta> annotated(const Expression* annotation) const {
    if (annotation == nullptr) return std::nullopt;
    if (annotation->kind == Kind::string) return parse_annotation(annotation->value);
    const bool is_symbol =
        annotation->kind == Kind::call && python::dotted_name(*annotation->children[0]) == "Sym";
    if (annotation->kind != Kind::subscript && !is_symbol) return std::nullopt;
    return parse_annotation(std::string_view(source_.text)
                                .substr(annotation->offset, annotation->end - annotation->offset));
  }
  void annotate(Node& node, const Expression* annotation) const {
    if (auto value = annotated(annotation)) node.meta.value = std::move(*value);
  }

  void statement(const Statement& current) {
    switch (current.kind) {
      case Statement::Kind::assign:
        assignment(current);
        return;
      case Statement::Kind::returns:
        if (current.value == nullptr) {
          graph_.set_output(Argument());
        } else {
          graph_.set_output(read_value(*current.value));
        }
        graph_.output()->meta.stack = comments_.stack;
        graph_.output()->meta.provenance = comments_.provenance;
        return;
      case Statement::Kind::expression:
        if (current.value->kind == Kind::string) return;  // a docstring
        if (current.value->kind == Kind::call) {
          make_node(*current.value, {});
          return;
        }
        break;
      case Statement::Kind::declaration:  // a joint graph's inputs, before they are unpacked
        if (current.targets[0]->kind != Kind::name) break;
        declared_.insert_or_assign(current.targets[0]->text, current.annotation);
        return;
      case Statement::Kind::pass:
        return;
      case Statement::Kind::other:
        if (std::string_view(source_.text).substr(current.offset).starts_with("del ")) return;
        break;
      default:
        break;
    }
    throw error(current, "a graph's forward() cannot contain this statement",
                "expected 'name = call(...)' or 'return (...)'");
  }

  static bool is_in_place(const Statement& statement) {
    return statement.kind == Statement::Kind::augmented ||
           (statement.kind == Statement::Kind::assign && statement.targets.size() == 1 &&
            statement.targets[0]->kind == Kind::subscript);
  }

  // `x += y;  iadd = x` and `x[i] = y;  setitem = x`: one node whose name the second statement
  // gives, if there is one. True if there is.
  bool in_place(const Statement& current, const Statement* next) {
    std::vector<Argument> args;
    std::string function;
    if (current.kind == Statement::Kind::augmented) {
      const PythonOperator* found = operator_of_symbol(current.operation, Form::in_place);
      if (found == nullptr) throw error(current, "unknown in-place operator");
      function = found->function;
      args = {read_value(*current.targets[0]), read_value(*current.value)};
    } else {
      const Expression& target = *current.targets[0];
      function = "operator.setitem";
      args = {read_value(*target.children[0]), read_value(*target.children[1]),
              read_value(*current.value)};
    }
    Node* object = args[0].node();
    if (object == nullptr) throw error(current, "expected a tensor on the left");
    std::string_view name;
    const bool names_result =
        next != nullptr && next->kind == Statement::Kind::assign && next->targets.size() == 1 &&
        next->targets[0]->kind == Kind::name && next->value->kind == Kind::name &&
        values_.contains(next->value->text) && values_.at(next->value->text) == object;
    if (names_result) name = next->targets[0]->text;
    Node& node = call_function(function, std::move(args), {}, name);
    if (names_result) {
      annotate(node, next->annotation);
      values_[name] = &node;
    } else if (current.targets[0]->kind == Kind::name) {
      values_[current.targets[0]->text] = &node;
    }
    return names_result;
  }

  void assignment(const Statement& current) {
    if (current.value->kind == Kind::none && current.annotation == nullptr) {
      release(current);
      return;
    }
    if (current.targets.size() != 1) throw error(current, "expected a single name before '='");
    const Expression& target = *current.targets[0];
    if (target.kind == Kind::tuple) {
      unpack(target, *current.value);
      return;
    }
    if (target.kind != Kind::name) throw error(target, "expected a name before '='");
    if (current.value->kind == Kind::name && !constants_.contains(current.value->text)) {
      alias(target, *current.value);
      return;
    }
    annotation_ = current.annotation;
    Argument value = make_value(*current.value, target.text);
    annotation_ = nullptr;
    constants_.erase(std::string(target.text));
    values_.erase(target.text);
    Node* node = value.node();
    if (node == nullptr) {  // a constant, or a list of values
      constants_.insert_or_assign(std::string(target.text), std::move(value));
      return;
    }
    annotate(*node, current.annotation);
    values_[target.text] = node;
  }

  // `x = y = None` after their last use.
  void release(const Statement& current) {
    for (const Expression* target : current.targets) {
      if (target->kind != Kind::name) throw error(*target, "expected a name before '= None'");
      // What frees a value may stay behind when somebody deletes the call that made it.
    }
  }

  // `l_x_ = L_x_` gives a parameter the name its node has in FX.
  void alias(const Expression& target, const Expression& value) {
    Node& node = look_up(value);
    if (node.op() == Op::placeholder && node.name() == node.target().name() &&
        graph_.find(target.text) == nullptr) {
      graph_.rename(node, target.text);
    }
    values_[target.text] = &node;
  }

  void unpack(const Expression& targets, const Expression& value) {
    Argument tuple = make_value(value, {});
    for (std::size_t i = 0; i < targets.children.size(); ++i) {
      const Expression& target = *targets.children[i];
      if (target.kind != Kind::name) throw error(target, "expected a name");
      Node& item =
          call_function("operator.getitem", {tuple, static_cast<std::int64_t>(i)}, {}, target.text);
      if (const auto found = declared_.find(target.text); found != declared_.end()) {
        annotate(item, found->second);
      }
      values_[target.text] = &item;
    }
  }

  Node& look_up(const Expression& name) {
    auto found = values_.find(name.text);
    if (found == values_.end()) {
      throw error(name, "'" + std::string(name.text) + "' is not defined",
                  "a graph can only use its parameters and the values computed above");
    }
    return *found->second;
  }

  void finish(Node& node) {
    node.meta.text_offset = statement_offset_;
    node.meta.stack = comments_.stack;
    node.meta.provenance = comments_.provenance;
  }

  Node& call_function(std::string function, std::vector<Argument> args,
                      std::vector<NamedArgument> kwargs, std::string_view name) {
    Node& node = graph_.call_function(Target(function), std::move(args), std::move(kwargs), name);
    finish(node);
    return node;
  }

  // ---- expressions ----

  Argument read_value(const Expression& expression) { return make_value(expression, {}); }

  // The argument an expression means; calls and operators in it become nodes. `name` is for the
  // node of the outermost one.
  Argument make_value(const Expression& expression, std::string_view name) {
    if (expression.kind == Kind::name) {
      if (values_.contains(expression.text)) return &look_up(expression);
      const auto constant = constants_.find(expression.text);
      if (constant != constants_.end() && !graph_.symbols().contains(expression.text)) {
        return constant->second;
      }
    }
    if (!graph_.symbols().empty() && integer_kind(expression) == Integer::size) {
      if (auto size = size_from_syntax(expression)) return std::move(*size);
    }
    const SyntaxReader read_item = [this](const Expression& item) { return read_value(item); };
    const bool is_local = values_.contains(root_name(expression));
    if (!is_local || expression.kind != Kind::attribute) {
      if (auto literal = literal_from_syntax(source_, expression, read_item)) {
        return std::move(*literal);
      }
    }
    if (expression.kind == Kind::attribute && !is_local) {
      const std::string dotted = python::dotted_name(expression);
      if (!dotted.empty() && root_name(expression) != "self") {
        outside_names_.push_back(&expression);
        return QualifiedName{dotted};
      }
    }
    return make_node(expression, name);
  }

  enum class Integer { no, number, size };

  // Whether an expression is made of numbers, or also of size symbols of the graph; values of the
  // graph are neither.
  Integer integer_kind(const Expression& expression) const {
    std::span<const Expression* const> operands = expression.children;
    switch (expression.kind) {
      case Kind::integer:
        return Integer::number;
      case Kind::name:
        return graph_.symbols().contains(expression.text) && !values_.contains(expression.text)
                   ? Integer::size
                   : Integer::no;
      case Kind::unary:
      case Kind::binary:
        break;
      case Kind::call:
        operands = operands.subspan(1);
        break;
      default:
        return Integer::no;
    }
    Integer result = Integer::number;
    for (const Expression* operand : operands) {
      const Integer kind = integer_kind(*operand);
      if (kind == Integer::no) return kind;
      result = std::max(result, kind);
    }
    return result;
  }

  static std::string_view root_name(const Expression& expression) {
    const Expression* current = &expression;
    while (current->kind == Kind::attribute) current = current->children[0];
    return current->kind == Kind::name ? current->text : std::string_view();
  }

  Argument make_node(const Expression& expression, std::string_view name) {
    switch (expression.kind) {
      case Kind::name:
        return &look_up(expression);
      case Kind::attribute:
        return attribute(expression, name);
      case Kind::call:
        return call(expression, name);
      case Kind::subscript:
        return &call_function(
            "operator.getitem",
            {read_value(*expression.children[0]), read_value(*expression.children[1])}, {}, name);
      case Kind::unary:
        return operation(expression, Form::unary, name);
      case Kind::binary:
        return operation(expression, Form::binary, name);
      case Kind::compare:
        return operation(expression, Form::compare, name);
      default:
        break;
    }
    std::string what(expression.kind == Kind::opaque ? expression.text : "this expression");
    throw error(expression, "a graph cannot contain " + what,
                "expected a call, an operator, an attribute or a constant");
  }

  Argument operation(const Expression& expression, Form form, std::string_view name) {
    const PythonOperator* found = operator_of_symbol(expression.text, form);
    if (found == nullptr) {
      throw error(expression, "a graph cannot contain '" + std::string(expression.text) + "'");
    }
    std::vector<Argument> args;
    for (const Expression* child : expression.children) args.push_back(read_value(*child));
    return &call_function(std::string(found->function), std::move(args), {}, name);
  }

  // What the readable form leaves out: a tensor, if the annotation of what is read says so.
  void add_missing_attribute(const std::string& path, const Expression* type) {
    const std::string name = path.substr(0, path.find('.'));
    const auto annotation = annotated(type);
    if (annotation && annotation->tensor() != nullptr && name == path) {
      TensorAttribute made;
      made.meta = *annotation->tensor();
      made.fill = c10::isFloatingType(made.meta.dtype) ? TensorAttribute::Fill::randn
                                                       : TensorAttribute::Fill::zeros;
      graph_.attributes().push_back({name, std::move(made)});
    } else {
      graph_.attributes().push_back({name, MissingSubgraph{kMissingAttribute}});
    }
  }

  void require_attribute(const Expression& expression, const std::string& path,
                         const Expression* type = nullptr) {
    if (graph_.attribute(path) != nullptr) return;
    // Of an exported program's shell, which repro/unwrap_pytrees.h takes off.
    constexpr std::array<std::string_view, 3> kShell = {"_in_spec", "_out_spec", "_guards_fn"};
    const bool is_of_shell = std::ranges::find(kShell, path) != kShell.end();
    if (has_constructor_ && !is_of_shell) {
      throw error(expression, "the module has no attribute '" + path + "'",
                  "expected it to be set in __init__");
    }
    add_missing_attribute(path, type);
  }

  Node& get_attr(const Expression& expression, std::string path, std::string_view name) {
    require_attribute(expression, path, annotation_);
    Node& node = graph_.get_attr(std::move(path), name);
    finish(node);
    return node;
  }

  Argument attribute(const Expression& expression, std::string_view name) {
    if (auto path = attribute_path(graph_, expression)) {
      if (auto found = constants_.find("self." + *path); found != constants_.end()) {
        return found->second;
      }
      return &get_attr(expression, *path, name);
    }
    return &call_function(
        "getattr", {read_value(*expression.children[0]), std::string(expression.text)}, {}, name);
  }

  Argument call(const Expression& expression, std::string_view name) {
    if (auto path = attribute_path(graph_, expression)) return &get_attr(expression, *path, name);
    const Expression& callee = *expression.children[0];
    std::vector<Argument> args;
    std::vector<NamedArgument> kwargs;
    const auto read_arguments = [&] {
      for (std::size_t i = 1; i < expression.children.size(); ++i) {
        args.push_back(read_value(*expression.children[i]));
      }
      for (const auto& keyword : expression.keywords) {
        if (keyword.name.empty()) throw error(*keyword.value, "a graph cannot contain **");
        kwargs.push_back({std::string(keyword.name), read_value(*keyword.value)});
      }
    };
    if (auto path = attribute_path(graph_, callee)) {
      // A method of a tensor or module: `self.weight.t()`.
      if (callee.kind == Kind::attribute && is_method_of_tensor(graph_, *path)) {
        args.push_back(read_value(*callee.children[0]));
        read_arguments();
        Node& node =
            graph_.call_method(std::string(callee.text), std::move(args), std::move(kwargs), name);
        finish(node);
        return &node;
      }
      require_attribute(callee, *path);
      read_arguments();
      Node& node = graph_.call_module(*path, std::move(args), std::move(kwargs), name);
      finish(node);
      return &node;
    }
    const std::string dotted = python::dotted_name(callee);
    const bool is_method =
        callee.kind == Kind::attribute && (dotted.empty() || values_.contains(root_name(callee)));
    if (is_method) {
      args.push_back(read_value(*callee.children[0]));
      read_arguments();
      Node& node =
          graph_.call_method(std::string(callee.text), std::move(args), std::move(kwargs), name);
      finish(node);
      return &node;
    }
    if (dotted.empty()) throw error(callee, "expected the name of a function");
    read_arguments();
    return &call_function(canonical_function(dotted), std::move(args), std::move(kwargs), name);
  }

  const Source& source_;
  StackComments comments_;
  Graph& graph_;
  std::unordered_map<std::string_view, Node*> values_;  // keys view the source
  std::vector<const Expression*> outside_names_;        // such as operator.add as an argument
  ModuleConstants constants_;
  bool has_constructor_;
  const Expression* annotation_ = nullptr;  // of the statement that is being read
  std::unordered_map<std::string_view, const Expression*> declared_;
  std::size_t statement_offset_ = 0;
};

}  // namespace

void read_forward(const Source& source, const std::vector<python::Comment>& comments,
                  const Statement& forward, ForwardContext context, Graph& graph) {
  ForwardReader(source, comments, graph, std::move(context)).read(forward);
}

}  // namespace assay::graph
