#include "graph/parse.h"

#include <map>
#include <set>
#include <utility>

#include "assay/error.h"
#include "graph/forward_syntax.h"
#include "graph/module_constants.h"
#include "graph/module_syntax.h"

namespace assay::graph {

namespace {

using python::Expression;
using python::Source;
using python::Statement;
using Kind = Expression::Kind;

// Finds the classes of a file and reads them as graphs.
class ModuleReader {
 public:
  ModuleReader(const Source& source, const python::Module& module)
      : source_(source), module_(module) {}

  std::unique_ptr<Graph> read() {
    for (const Statement& statement : module_.statements) {
      if (statement.kind == Statement::Kind::class_def) classes_[statement.name] = &statement;
    }
    constants_ = module_constants(source_, module_);
    const Statement& definition = main_class();
    auto graph = definition.kind == Statement::Kind::function ? read_function(definition)
                                                              : read_class(definition);
    if (construction_ != nullptr) apply_module_methods(source_, *construction_, *graph);
    return graph;
  }

 private:
  // The class that `expression` makes an object of, also inside other calls:
  // `make_fx(Repro().cuda(), tracing_mode='real')(*args)`.
  const Statement* constructed_class(const Expression& expression) {
    if (expression.kind == Kind::attribute) return constructed_class(*expression.children[0]);
    if (expression.kind != Kind::call) return nullptr;
    const auto found = classes_.find(python::dotted_name(*expression.children[0]));
    if (found != classes_.end() && find_forward(*found->second) != nullptr) return found->second;
    for (const Expression* child : expression.children) {
      if (const Statement* inner = constructed_class(*child)) {
        if (construction_ == nullptr) construction_ = child;
        return inner;
      }
    }
    return nullptr;
  }

  const Statement& main_class() {
    const Statement* last = nullptr;
    for (const Statement& statement : module_.statements) {
      if (statement.kind == Statement::Kind::class_def && find_forward(statement) != nullptr) {
        last = &statement;
      }
      if (statement.kind == Statement::Kind::function && statement.name == "forward" &&
          last == nullptr) {
        last = &statement;  // a graph's forward() without its class
      }
      if (statement.kind != Statement::Kind::assign || statement.value->kind != Kind::call)
        continue;
      const Expression& target = *statement.targets[0];
      if (target.kind != Kind::name || target.text != "mod") continue;
      if (const Statement* found = constructed_class(*statement.value)) {
        construction_ = statement.value;
        return *found;
      }
    }
    if (auto found = classes_.find("Repro");
        found != classes_.end() && find_forward(*found->second) != nullptr) {
      return *found->second;
    }
    if (last == nullptr) {
      if (auto found = classes_.find("Repro"); found != classes_.end()) return *found->second;
      throw UserError(source_.file + ": no graph found",
                      "expected a class with a forward() method, as in stock PyTorch's repro.py");
    }
    return *last;
  }

  static const Statement* find_method(const Statement& definition, std::string_view name) {
    for (const Statement& statement : definition.body) {
      if (statement.kind == Statement::Kind::function && statement.name == name) return &statement;
    }
    return nullptr;
  }
  static const Statement* find_forward(const Statement& definition) {
    return find_method(definition, "forward");
  }

  std::unique_ptr<Graph> read_class(const Statement& definition) {
    const Statement* forward = find_forward(definition);
    if (forward == nullptr) {
      throw source_.error(definition.offset, 5,
                          "the class '" + std::string(definition.name) + "' has no forward()");
    }
    if (++nesting_ > kMaxNesting) {
      throw source_.error(definition.offset, 5, "subgraphs are nested too deeply");
    }
    auto graph = std::make_unique<Graph>(
        definition.name == "lambda" ? "Repro" : std::string(definition.name));
    // Nested classes are subgraphs named after the attribute, as FX's readable form has them.
    for (const Statement& statement : definition.body) {
      if (statement.kind == Statement::Kind::class_def && find_forward(statement) != nullptr) {
        graph->attributes().push_back(
            {std::string(statement.name), std::shared_ptr<const Graph>(read_class(statement))});
      }
    }
    ModuleConstants constants = constants_;
    const Statement* constructor = find_method(definition, "__init__");
    // Before there was a method for it, constants were attributes of the class.
    for (const Statement& statement : definition.body) {
      add_attribute(statement, class_statement_from_syntax(source_, statement), *graph, constants);
    }
    if (constructor != nullptr) read_attributes(*constructor, *graph, constants);
    read_forward(source_, module_.comments, *forward,
                 {std::move(constants), constructor != nullptr}, *graph);
    --nesting_;
    return graph;
  }

  // A forward() that stands alone, as debuggers print it.
  std::unique_ptr<Graph> read_function(const Statement& forward) {
    auto graph = std::make_unique<Graph>("Repro");
    read_forward(source_, module_.comments, forward, {constants_, false}, *graph);
    return graph;
  }

  void read_attributes(const Statement& constructor, Graph& graph, ModuleConstants& constants) {
    for (const Statement& statement : constructor.body) {
      add_attribute(statement, init_statement_from_syntax(source_, statement), graph, constants);
    }
  }

  void add_attribute(const Statement& statement, InitStatement read, Graph& graph,
                     ModuleConstants& constants) {
    if (auto* constant = std::get_if<NamedArgument>(&read)) {
      constants.insert_or_assign("self." + constant->name, std::move(constant->value));
      return;
    }
    auto* found = std::get_if<Attribute>(&read);
    if (found == nullptr) return;
    if (const auto* module = std::get_if<ModuleAttribute>(&found->value)) {
      if (auto known = classes_.find(module->constructor); known != classes_.end()) {
        if (!used_classes_.insert(known->first).second) {
          throw source_.error(statement.offset, statement.end - statement.offset,
                              "the class '" + module->constructor + "' is used twice",
                              "give each subgraph a class of its own");
        }
        found->value = std::shared_ptr<const Graph>(read_class(*known->second));
      } else if (module->constructor == "GraphModule") {
        // Only the name of the subgraph's type was printed.
        found->value = MissingSubgraph{"GraphModule()"};
      }
    }
    if (graph.attribute(found->name) != nullptr) {
      throw source_.error(statement.offset, statement.end - statement.offset,
                          "the attribute '" + found->name + "' is set twice");
    }
    graph.attributes().push_back(std::move(*found));
  }

  static constexpr int kMaxNesting = 50;
  const Source& source_;
  const python::Module& module_;
  std::map<std::string_view, const Statement*, std::less<>> classes_;
  std::set<std::string_view> used_classes_;  // as subgraphs: each once, so that reading is linear
  ModuleConstants constants_;
  const Expression* construction_ = nullptr;  // of the object that the file runs
  int nesting_ = 0;
};

}  // namespace

std::unique_ptr<Graph> parse(const Source& source, const python::Module& module) {
  return ModuleReader(source, module).read();
}

std::unique_ptr<Graph> parse(const std::string& text, const std::string& file) {
  const Source source{file, text};
  const python::Module module = python::parse_module(source);
  return parse(source, module);
}

}  // namespace assay::graph
