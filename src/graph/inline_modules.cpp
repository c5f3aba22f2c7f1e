#include "graph/inline_modules.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "graph/module_emitter.h"

namespace assay::graph {

namespace {

// `torch.nn.modules.linear.Linear`, `nn.Linear` and `Linear` are the same class; `my.Linear` is
// not, and neither is a quantized one.
std::string_view torch_class(std::string_view constructor) {
  const auto dot = constructor.rfind('.');
  if (dot == std::string_view::npos) return constructor;
  const std::string_view module = constructor.substr(0, dot);
  const bool is_torch =
      module == "torch.nn" || module == "nn" ||
      (module.starts_with("torch.nn.modules.") && module.find('.', 17) == std::string_view::npos);
  return is_torch ? constructor.substr(dot + 1) : std::string_view();
}

bool is_container(std::string_view name) {
  return name == "Sequential" || name == "ModuleList" || name == "ModuleDict";
}

class Inliner {
 public:
  Inliner(Graph& graph, Node& node) : graph_(graph), node_(node) {}

  // What the call of `module` gives; nothing if it is not known.
  std::optional<Argument> emit(const std::string& path, const ModuleAttribute& module,
                               const std::vector<Argument>& inputs,
                               const std::vector<NamedArgument>& keywords) {
    const std::string_view name = torch_class(module.constructor);
    if (name == "Sequential") return emit_sequence(path, module, inputs);
    if (const ModuleRow* row = find_layer(name)) {
      ModuleEmitter emitter(graph_, node_, path, module, row->parameters, inputs, keywords);
      return row->emit(emitter);
    }
    if (const FunctionRow* row = find_function_module(name)) {
      return emit_function(*row, path, module, inputs, keywords);
    }
    return std::nullopt;
  }

  // True if every part of the module is known, so that emit() gives a result.
  static bool knows(const ModuleAttribute& module) {
    const std::string_view name = torch_class(module.constructor);
    if (is_container(name)) {
      return module.members == nullptr ||
             std::ranges::all_of(*module.members,
                                 [](const ModuleMember& member) { return knows(member.module); });
    }
    // repr() of a MultiheadAttention has the parts, and not what it was made with.
    if (module.members != nullptr) return false;
    return find_layer(name) != nullptr || find_function_module(name) != nullptr;
  }

 private:
  std::optional<Argument> emit_sequence(const std::string& path, const ModuleAttribute& module,
                                        const std::vector<Argument>& inputs) {
    if (inputs.size() != 1) throw UserError("a Sequential takes one argument");
    Argument value = inputs[0];
    if (module.members == nullptr) return value;
    for (const ModuleMember& member : *module.members) {
      auto next = emit(path + "." + member.name, member.module, {value}, {});
      if (!next) return std::nullopt;
      value = std::move(*next);
    }
    return value;
  }

  Argument emit_function(const FunctionRow& row, const std::string& path,
                         const ModuleAttribute& module, const std::vector<Argument>& inputs,
                         const std::vector<NamedArgument>& keywords) {
    ModuleEmitter emitter(graph_, node_, path, module, row.parameters, inputs, keywords);
    std::vector<Argument> args;
    for (std::size_t i = 0; i < row.inputs; ++i) args.push_back(emitter.input(i));
    std::vector<NamedArgument> kwargs;
    for (std::string_view rest = row.passed; !rest.empty();) {
      const auto comma = rest.find(", ");
      const std::string_view name = rest.substr(0, comma);
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
      kwargs.push_back({std::string(name),
                        name == "training" ? Argument(emitter.is_training()) : emitter[name]});
    }
    return emitter.call(row.function, std::move(args), std::move(kwargs));
  }

  Graph& graph_;
  Node& node_;
};

const ModuleAttribute* member_at(const ModuleAttribute& module, std::string_view path) {
  if (path.empty()) return &module;
  if (module.members == nullptr) return nullptr;
  const auto dot = path.find('.');
  const std::string_view rest =
      dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  for (const ModuleMember& member : *module.members) {
    if (member.name == path.substr(0, dot)) return member_at(member.module, rest);
  }
  return nullptr;
}

// The module that a call_module's target names, or nullptr if it is something else.
const ModuleAttribute* called_module(const Graph& graph, const Node& node) {
  const std::string& target = node.target().name();
  const Attribute* attribute = graph.attribute(target);
  if (attribute == nullptr) return nullptr;
  const auto* module = std::get_if<ModuleAttribute>(&attribute->value);
  if (module == nullptr || target == attribute->name) return module;
  return member_at(*module, std::string_view(target).substr(attribute->name.size() + 1));
}

// Everything that used `node` uses `value`; items of a tuple are taken from it at once.
void replace_uses(Graph& graph, Node& node, const Argument& value) {
  const std::vector<Node*> users = node.users();
  for (Node* user : users) {
    if (std::ranges::find(node.users(), user) == node.users().end()) continue;  // done already
    if (user->calls("operator.getitem") && user->args().size() == 2 &&
        user->args()[0].node() == &node && !value.items().empty()) {
      const auto* index = user->args()[1].get_if<std::int64_t>();
      const auto count = static_cast<std::int64_t>(value.items().size());
      if (index != nullptr && *index >= -count && *index < count) {
        const Argument item =
            value.items()[static_cast<std::size_t>(*index < 0 ? *index + count : *index)];
        replace_uses(graph, *user, item);
        graph.erase(*user);
        continue;
      }
    }
    const auto replace = [&](Node& mentioned) -> Argument {
      return &mentioned == &node ? value : Argument(&mentioned);
    };
    std::vector<Argument> args;
    for (const Argument& argument : user->args()) args.push_back(argument.map_nodes(replace));
    std::vector<NamedArgument> kwargs;
    for (const auto& [name, argument] : user->kwargs()) {
      kwargs.push_back({name, argument.map_nodes(replace)});
    }
    user->set_arguments(std::move(args), std::move(kwargs));
  }
}

NodeId newest_id(const Graph& graph) {
  NodeId newest = 0;
  for (const Node& node : graph.nodes()) newest = std::max(newest, node.id());
  return newest;
}

// `self.conv.weight` reads the parameter that a call of `self.conv` has made.
void read_parameters_of_modules(Graph& graph) {
  for (Node& node : graph.nodes()) {
    if (node.op() != Op::get_attr) continue;
    std::string name = node.target().name();
    std::ranges::replace(name, '.', '_');
    const Attribute* found = graph.attribute(name);
    if (found != nullptr && found->name == name) node.set_target(Target(name));
  }
}

void drop_unused_modules(Graph& graph) {
  std::set<std::string> used;
  for (const Node& node : graph.nodes()) {
    if (node.op() != Op::call_module && node.op() != Op::get_attr) continue;
    if (const Attribute* found = graph.attribute(node.target().name())) used.insert(found->name);
  }
  std::erase_if(graph.attributes(), [&](const Attribute& attribute) {
    const auto* module = std::get_if<ModuleAttribute>(&attribute.value);
    return module != nullptr && Inliner::knows(*module) && !used.contains(attribute.name);
  });
}

}  // namespace

void inline_modules(Graph& graph) {
  for (Attribute& attribute : graph.attributes()) {
    const Graph* subgraph = attribute.subgraph();
    if (subgraph == nullptr) continue;
    std::shared_ptr<Graph> body = subgraph->clone();
    inline_modules(*body);
    attribute.value = std::shared_ptr<const Graph>(std::move(body));
  }
  std::vector<Node*> calls;
  for (Node& node : graph.nodes()) {
    if (node.op() == Op::call_module) calls.push_back(&node);
  }
  for (Node* node : calls) {
    const ModuleAttribute* found = called_module(graph, *node);
    if (found == nullptr || !Inliner::knows(*found)) continue;
    const ModuleAttribute module = *found;  // the attributes grow below
    const NodeId newest = newest_id(graph);
    const auto result =
        Inliner(graph, *node).emit(node->target().name(), module, node->args(), node->kwargs());
    internal_check(result.has_value(), "a known module gives a result");
    const std::string name = node->name();
    Node* made = result->node();
    if (made != nullptr && made->id() <= newest) made = nullptr;  // the argument itself
    if (made != nullptr) made->meta.value = node->meta.value;
    replace_uses(graph, *node, *result);
    graph.erase(*node);
    if (made != nullptr) graph.rename(*made, name);
  }
  read_parameters_of_modules(graph);
  drop_unused_modules(graph);
}

}  // namespace assay::graph
