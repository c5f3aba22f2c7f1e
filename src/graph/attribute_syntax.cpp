#include "graph/attribute_syntax.h"

namespace assay::graph {

namespace {

using python::Expression;
using Kind = Expression::Kind;

bool is_module_path(const Graph& graph, std::string_view path) {
  const Attribute* found = graph.attribute(path);
  return found != nullptr && std::holds_alternative<ModuleAttribute>(found->value);
}

}  // namespace

std::optional<std::string> attribute_path(const Graph& graph, const Expression& expression) {
  if (expression.kind == Kind::name && expression.text == "self") return "";
  std::optional<std::string> base;
  std::string last;
  if (expression.kind == Kind::attribute) {
    base = attribute_path(graph, *expression.children[0]);
    last = expression.text;
  } else if (expression.kind == Kind::call && expression.children.size() == 3 &&
             expression.children[0]->kind == Kind::name &&
             expression.children[0]->text == "getattr" &&
             expression.children[2]->kind == Kind::string) {
    base = attribute_path(graph, *expression.children[1]);
    last = std::string(expression.children[2]->value);
  } else if (expression.kind == Kind::subscript) {
    const Expression& index = *expression.children[1];
    if (index.kind != Kind::integer && index.kind != Kind::string) return std::nullopt;
    base = attribute_path(graph, *expression.children[0]);
    if (!base || !is_module_path(graph, *base)) return std::nullopt;
    last = index.kind == Kind::string ? std::string(index.value) : std::to_string(index.magnitude);
  }
  if (!base) return std::nullopt;
  return base->empty() ? last : *base + "." + last;
}

bool is_method_of_tensor(const Graph& graph, std::string_view path) {
  const auto dot = path.rfind('.');
  if (dot == std::string_view::npos) return false;
  const Attribute* found = graph.attribute(path.substr(0, dot));
  return found != nullptr && found->name == path.substr(0, dot) &&
         std::holds_alternative<TensorAttribute>(found->value);
}

}  // namespace assay::graph
