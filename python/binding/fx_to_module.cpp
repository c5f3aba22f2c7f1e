// graph::Graph -> torch.fx.GraphModule.
#include <set>
#include <unordered_map>

#include "assay/error.h"
#include "aten/plan.h"
#include "aten/result_structure.h"
#include "fx_arguments.h"
#include "fx_graph.h"
#include "fx_meta.h"
#include "fx_targets.h"
#include "graph/annotation.h"
#include "python_values.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

using graph::Argument;
using graph::Op;
using graph::SizeExpr;

// In graphs of operators, as AOTAutograd makes them, FX keeps values as 'val'.
const char* value_key(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.op() == Op::call_method || node.op() == Op::call_module) return "example_value";
    if (node.op() == Op::call_function && !node.target().is_operator() &&
        !node.calls("operator.getitem")) {
      return "example_value";
    }
  }
  return "val";
}

// The functions that FX's nodes compute sizes with.
const char* size_function(SizeExpr::Operation operation) {
  switch (operation) {
    case SizeExpr::Operation::add:
      return "operator.add";
    case SizeExpr::Operation::subtract:
      return "operator.sub";
    case SizeExpr::Operation::multiply:
      return "operator.mul";
    case SizeExpr::Operation::floor_divide:
      return "operator.floordiv";
    case SizeExpr::Operation::modulo:
      return "operator.mod";
    case SizeExpr::Operation::power:
      return "operator.pow";
    case SizeExpr::Operation::minimum:
      return "torch.sym_min";
    case SizeExpr::Operation::maximum:
      return "torch.sym_max";
    case SizeExpr::Operation::constant:
    case SizeExpr::Operation::symbol:
      break;
  }
  throw InternalError("a size of this kind is not computed");
}

class ModuleWriter {
 public:
  ModuleWriter(const graph::Graph& graph, const GraphModuleOptions& options, std::string path,
               py::object examples)
      : graph_(graph),
        options_(options),
        path_(std::move(path)),
        examples_(std::move(examples)),
        helpers_(py::module_::import("assay._fx_nodes")),
        node_type_(py::module_::import("torch.fx").attr("Node")),
        meta_type_(helpers_.attr("NodeMeta")),
        fx_graph_(py::module_::import("torch.fx").attr("Graph")()),
        insert_(fx_graph_.attr("_insert")),
        value_key_(value_key(graph)) {
    argument_objects_.node_object = [this](const graph::Node& node) { return nodes_.at(&node); };
    argument_objects_.size_object = [this](const SizeExpr& size) { return size_object(size); };
  }

  py::object write() {
    py::dict attributes;
    for (const graph::Node& node : graph_.nodes()) {
      if (node.op() == Op::get_attr || node.op() == Op::call_module) {
        add_attribute(node.target().name(), attributes);
      }
      write(node);
    }
    helpers_.attr("adopt")(fx_graph_, all_);
    py::object made = helpers_.attr("graph_module")(attributes, fx_graph_, graph_.name());
    if (!graph_.symbols().empty()) made.attr("meta")["assay_symbols"] = symbols();
    return made;
  }

 private:
  void write(const graph::Node& node) {
    const py::object target =
        node.op() == Op::call_function ? callable_of(node.target()) : py::str(name_of(node));
    py::tuple args(node.args().size());
    if (node.op() == Op::output && options_.flat_output && path_.empty()) {
      args[0] = flat_output(node.args()[0]);
    } else {
      for (std::size_t i = 0; i < node.args().size(); ++i) args[i] = object_of(node.args()[i]);
    }
    py::dict kwargs;
    for (const graph::NamedArgument& argument : node.kwargs()) {
      kwargs[py::str(argument.name)] = object_of(argument.value);
    }
    const py::object made = add(node.name(), graph::to_string(node.op()), target, args, kwargs);
    nodes_.emplace(&node, made);
    write_meta(node, made);
  }

  // A placeholder's target is a parameter of the generated function: no two have the same.
  const std::string& name_of(const graph::Node& node) {
    const std::string& name = node.target().name();
    const bool is_parameter = node.op() == Op::placeholder;
    return is_parameter && !parameters_.insert(name).second ? node.name() : name;
  }

  py::object add(const std::string& name, const char* op, const py::object& target,
                 const py::tuple& args, const py::dict& kwargs) {
    py::object made = node_type_(fx_graph_, name, op, target, args, kwargs);
    insert_(made);
    all_.append(made);
    return made;
  }

  py::object object_of(const Argument& argument) const {
    return argument_object(argument, argument_objects_);
  }

  // As assay._symbols.describe() has them.
  py::list symbols() const {
    py::list rows;
    for (const auto& [name, symbol] : graph_.symbols()) {
      const auto [low, high] = symbol.range;
      rows.append(py::make_tuple(name, symbol.hint,
                                 low == INT64_MIN ? py::object(py::none()) : py::int_(low),
                                 high == INT64_MAX ? py::object(py::none()) : py::int_(high)));
    }
    return rows;
  }

  py::tuple flat_output(const Argument& output) const {
    py::list leaves;
    aten::for_each_result(output, [&](const Argument& leaf) { leaves.append(object_of(leaf)); });
    return py::tuple(leaves);
  }

  void write_meta(const graph::Node& node, const py::object& made) const {
    if (node.meta.value.known()) {
      made.attr("meta") =
          meta_type_(value_key_, graph::annotation_text(node.meta.value), examples_);
    }
    if (const auto names = node.meta.provenance.names(); !names.empty()) {
      made.attr("meta")[py::str("assay_from")] = names;
    }
    if (!node.meta.stack.empty()) {
      made.attr("meta")[py::str("stack_trace")] = stack_text(node.meta.stack);
    }
  }

  void add_attribute(const std::string& target, py::dict& attributes) const {
    const py::str key(target);
    if (attributes.contains(key)) return;
    const graph::Attribute* attribute = graph_.attribute(target);
    if (attribute == nullptr) throw UserError("the graph has no attribute '" + target + "'");
    py::object object = attribute_object(*attribute);
    // A part of a module: `layer.weight`.
    for (std::string_view rest = std::string_view(target).substr(attribute->name.size());
         !rest.empty();) {
      rest.remove_prefix(1);
      const auto dot = rest.find('.');
      object = object.attr(std::string(rest.substr(0, dot)).c_str());
      rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot);
    }
    attributes[key] = object;
  }

  py::object attribute_object(const graph::Attribute& attribute) const {
    if (const auto found = options_.objects.find(path_ + attribute.name);
        found != options_.objects.end()) {
      return found->second;
    }
    if (const graph::Graph* subgraph = attribute.subgraph()) {
      return ModuleWriter(*subgraph, options_, path_ + attribute.name + ".", examples_).write();
    }
    if (const auto* tensor = std::get_if<graph::TensorAttribute>(&attribute.value)) {
      py::object made = to_python(aten::attribute_value(*tensor));
      if (!tensor->is_parameter) return made;
      return py::module_::import("torch").attr("nn").attr("Parameter")(
          made.attr("detach")(), py::bool_(tensor->meta.requires_grad));
    }
    if (const auto* module = std::get_if<graph::ModuleAttribute>(&attribute.value)) {
      return make_module(*module);
    }
    throw UserError("the body of the subgraph '" + attribute.name + "' is missing");
  }

  py::object make_module(const graph::ModuleAttribute& module) const {
    const bool is_stock = module.constructor.find('.') == std::string::npos;
    const py::object type =
        object_named(is_stock ? "torch.nn." + module.constructor : module.constructor);
    py::tuple args(module.args.size());
    for (std::size_t i = 0; i < module.args.size(); ++i) args[i] = object_of(module.args[i]);
    py::dict kwargs;
    for (const graph::NamedArgument& argument : module.kwargs) {
      kwargs[py::str(argument.name)] = object_of(argument.value);
    }
    return type(*args, **kwargs);
  }

  // ---- symbolic sizes as arguments: nodes that compute them from the inputs ----

  py::object size_object(const SizeExpr& size) {
    if (const auto number = size.constant()) return py::int_(*number);
    const std::string key = size.str();
    if (const auto known = sizes_.find(key); known != sizes_.end()) return known->second;
    py::object made = input_size(size);
    if (!made) {
      if (size.operation() == SizeExpr::Operation::symbol) {
        throw UserError("no input of the graph tells the value of the size '" + key + "'");
      }
      for (const SizeExpr& operand : size.operands()) {
        const py::object next = size_object(operand);
        made = made ? add_size(size_function(size.operation()), {made, next}) : next;
      }
    }
    sizes_.emplace(key, made);
    return made;
  }

  // An input that is this size, or has it; null if there is none.
  py::object input_size(const SizeExpr& size) {
    for (const graph::Node* input : graph_.placeholders()) {
      if (const auto* number = std::get_if<SizeExpr>(&input->meta.value.value)) {
        if (*number == size) return nodes_.at(input);
      }
    }
    for (const graph::Node* input : graph_.placeholders()) {
      const graph::TensorMeta* tensor = input->meta.value.tensor();
      if (tensor == nullptr) continue;
      for (std::size_t i = 0; i < tensor->sizes.size(); ++i) {
        if (tensor->sizes[i] == size) {
          return add_size("torch.ops.aten.sym_size.int", {nodes_.at(input), py::int_(i)});
        }
      }
    }
    return {};
  }

  py::object add_size(const char* function, const std::vector<py::object>& operands) {
    std::string name;
    do {
      name = "sym_size_" + std::to_string(next_size_++);
    } while (graph_.find(name) != nullptr);
    py::tuple args(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) args[i] = operands[i];
    return add(name, "call_function", callable_of(graph::Target(function)), args, {});
  }

  const graph::Graph& graph_;
  const GraphModuleOptions& options_;
  std::string path_;     // of this graph among the attributes of the main one
  py::object examples_;  // makes the example values of all nodes
  py::module_ helpers_;
  py::object node_type_;
  py::object meta_type_;
  py::object fx_graph_;
  py::object insert_;
  const char* value_key_;
  py::list all_;
  ArgumentObjects argument_objects_;
  std::unordered_map<const graph::Node*, py::object> nodes_;
  std::set<std::string> parameters_;
  std::map<std::string, py::object> sizes_;
  int next_size_ = 0;
};

}  // namespace

py::object module_from_graph(const graph::Graph& graph, const GraphModuleOptions& options) {
  if (graph.output() == nullptr) throw UserError("the graph has no output");
  py::object examples = py::module_::import("assay._fx_nodes").attr("Examples")();
  return ModuleWriter(graph, options, "", std::move(examples)).write();
}

}  // namespace assay::binding
