// torch.fx.GraphModule -> graph::Graph.
#include <torch/csrc/autograd/python_variable.h>

#include <optional>
#include <set>

#include "assay/error.h"
#include "fx_arguments.h"
#include "fx_graph.h"
#include "fx_meta.h"
#include "fx_targets.h"
#include "graph/parse.h"
#include "graph/python_names.h"
#include "graph/stack_comments.h"

namespace py = pybind11;

namespace assay::binding {

namespace {

using graph::Argument;
using graph::Op;

// Elements of a constant that are written out in the text form; what has more is described only.
constexpr std::int64_t kMaxWrittenElements = 256;

Op op_named(const std::string& name) {
  for (const Op op : {Op::placeholder, Op::get_attr, Op::call_function, Op::call_method,
                      Op::call_module, Op::output}) {
    if (name == graph::to_string(op)) return op;
  }
  throw UserError("unknown kind of node '" + name + "'");
}

// What the graph and its subgraphs share.
struct Shared {
  MetaReader meta;
  AttributeObjects objects;
  std::set<std::string> class_names = {"Repro"};  // not a subgraph's: it would be the main class

  std::string class_name(const std::string& wish) {
    const std::string base = graph::python_identifier(wish);
    std::string name = base;
    for (int i = 1; !class_names.insert(name).second; ++i) name = base + "_" + std::to_string(i);
    return name;
  }
};

bool is_graph_module(py::handle object) {
  return py::isinstance(object, py::module_::import("torch.fx").attr("GraphModule"));
}

std::string type_name(py::handle object) {
  return py::cast<std::string>(py::type::of(object).attr("__name__"));
}

// A constant can be written out if its elements are numbers that Python has.
bool has_plain_elements(const at::Tensor& tensor) {
  const auto dtype = tensor.scalar_type();
  return dtype == c10::kFloat || dtype == c10::kDouble || dtype == c10::kLong ||
         dtype == c10::kInt || dtype == c10::kShort || dtype == c10::kChar || dtype == c10::kByte ||
         dtype == c10::kBool;
}

graph::TensorAttribute tensor_attribute(py::handle object) {
  const at::Tensor& tensor = THPVariable_Unpack(object.ptr());
  if (tensor.layout() != c10::kStrided) {
    throw UserError("a graph cannot hold a tensor that is not strided");
  }
  graph::TensorAttribute made;
  made.meta = tensor_meta_of(tensor);
  made.is_parameter =
      py::isinstance(object, py::module_::import("torch").attr("nn").attr("Parameter"));
  made.fill = c10::isFloatingType(made.meta.dtype) ? graph::TensorAttribute::Fill::randn
                                                   : graph::TensorAttribute::Fill::zeros;
  const bool is_plain = THPVariable_CheckExact(object.ptr()) || made.is_parameter;
  if (is_plain && tensor.device().is_cpu() && tensor.numel() > 0 &&
      tensor.numel() <= kMaxWrittenElements && has_plain_elements(tensor)) {
    made.fill = graph::TensorAttribute::Fill::values;
    made.values = argument_from(object.attr("tolist")(), {});
  }
  return made;
}

// The module as its repr() has it: `Linear(in_features=2, out_features=3, bias=True)`.
graph::ModuleAttribute module_attribute(py::handle module) {
  const py::object type = py::type::of(module);
  const auto home = py::cast<std::string>(type.attr("__module__"));
  const std::string name = type_name(module);
  const std::string constructor = home.starts_with("torch.nn.modules.") ? name : home + "." + name;
  const auto arguments = py::cast<std::string>(module.attr("extra_repr")());
  try {
    const auto parsed = graph::parse(
        "class M(torch.nn.Module):\n    def __init__(self):\n        self.m = " + constructor +
        "(" + arguments + ")\n    def forward(self):\n        return None\n");
    if (const auto* made = std::get_if<graph::ModuleAttribute>(&parsed->attributes()[0].value)) {
      return *made;
    }
  } catch (const UserError&) {  // its author describes it in other words
  }
  return {constructor, {}, {}};
}

class GraphReader {
 public:
  GraphReader(Shared& shared, py::handle module, std::string path, std::string name)
      : shared_(shared),
        module_(py::reinterpret_borrow<py::object>(module)),
        path_(std::move(path)),
        graph_(std::make_unique<graph::Graph>(std::move(name))) {}

  std::unique_ptr<graph::Graph> read(py::handle example_inputs) {
    // As a list: FX's iterator begins again when it is asked after its end, as pybind11 does.
    const py::list list(py::object(module_.attr("graph").attr("nodes")));
    std::vector<py::object> nodes;
    for (py::handle node : list) nodes.push_back(py::reinterpret_borrow<py::object>(node));
    std::vector<Op> ops;
    ops.reserve(nodes.size());
    for (const py::object& node : nodes) {
      ops.push_back(op_named(py::cast<std::string>(node.attr("op"))));
    }
    // In our graphs the placeholders come first.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (ops[i] == Op::placeholder) located(Op::placeholder, nodes[i]);
    }
    describe_inputs(example_inputs);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (ops[i] != Op::placeholder) located(ops[i], nodes[i]);
    }
    if (graph_->output() == nullptr) throw UserError("the GraphModule has no output");
    return std::move(graph_);
  }

 private:
  void located(Op op, const py::object& node) {
    try {
      add(op, node);
    } catch (const UserError& error) {
      throw UserError(
          "node '" + py::cast<std::string>(node.attr("name")) + "': " + error.detail().message,
          error.detail().hint);
    }
  }

  void add(Op op, const py::object& node) {
    graph::Node& made = make(op, node);
    nodes_.emplace(node.ptr(), &made);
    shared_.meta.read(node.attr("meta"), made.meta);
  }

  graph::Node& make(Op op, const py::object& node) {
    const py::object target = node.attr("target");
    const auto name = py::cast<std::string>(node.attr("name"));
    switch (op) {
      case Op::placeholder: {
        graph::Node& made = graph_->placeholder(name, py::cast<std::string>(target));
        if (auto args = positional(node); !args.empty()) made.set_arguments(std::move(args));
        if (graph::is_tangent_name(made.target().name())) {
          made.meta.role = graph::InputRole::tangent;
        }
        return made;
      }
      case Op::get_attr:
        return graph_->get_attr(attribute(py::cast<std::string>(target)), name);
      case Op::call_function:
        return graph_->call_function(target_of(target), positional(node), keywords(node), name);
      case Op::call_method:
        return graph_->call_method(py::cast<std::string>(target), positional(node), keywords(node),
                                   name);
      case Op::call_module:
        return graph_->call_module(attribute(py::cast<std::string>(target)), positional(node),
                                   keywords(node), name);
      case Op::output:
        return graph_->set_output(argument_from(py::tuple(node.attr("args"))[0], nodes_));
    }
    throw InternalError("unknown kind of node");
  }

  std::vector<Argument> positional(const py::object& node) const {
    std::vector<Argument> args;
    const py::tuple given = node.attr("args");
    args.reserve(given.size());
    for (py::handle argument : given) args.push_back(argument_from(argument, nodes_));
    return args;
  }

  std::vector<graph::NamedArgument> keywords(const py::object& node) const {
    std::vector<graph::NamedArgument> kwargs;
    for (auto [key, value] : py::reinterpret_borrow<py::dict>(node.attr("kwargs"))) {
      kwargs.push_back({py::cast<std::string>(key), argument_from(value, nodes_)});
    }
    return kwargs;
  }

  // The name in our graph of the attribute that a node mentions; adds it at the first mention.
  std::string attribute(const std::string& target) {
    const auto known = attributes_.find(target);
    if (known != attributes_.end()) return known->second;
    const std::string base = graph::python_identifier(target);
    std::string name = base;
    for (int i = 1; graph_->attribute(name) != nullptr; ++i) {
      name = base + "_" + std::to_string(i);
    }
    attributes_.emplace(target, name);
    graph_->attributes().push_back({name, attribute_value(target, name)});
    return name;
  }

  decltype(graph::Attribute::value) attribute_value(const std::string& target,
                                                    const std::string& name) {
    py::object object = module_;
    for (std::string_view rest = target; !rest.empty();) {
      const auto dot = rest.find('.');
      object = object.attr(std::string(rest.substr(0, dot)).c_str());
      rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    }
    if (is_graph_module(object)) {
      GraphReader reader(shared_, object, path_ + name + ".", shared_.class_name(name));
      return std::shared_ptr<const graph::Graph>(reader.read(py::none()));
    }
    const bool is_tensor = THPVariable_Check(object.ptr());
    if (!is_tensor && !py::isinstance(object, py::module_::import("torch.nn").attr("Module"))) {
      throw UserError("a graph cannot hold the attribute '" + target + "' of type '" +
                      type_name(object) + "'");
    }
    shared_.objects.emplace(path_ + name, object);
    if (is_tensor) return tensor_attribute(object);
    return module_attribute(object);
  }

  void describe_inputs(py::handle example_inputs) {
    if (example_inputs.is_none()) return;
    const auto placeholders = graph_->placeholders();
    const auto inputs = py::reinterpret_borrow<py::sequence>(example_inputs);
    if (inputs.size() != placeholders.size()) {
      throw UserError("the graph has " + std::to_string(placeholders.size()) +
                      " placeholders, but there are " + std::to_string(inputs.size()) +
                      " example inputs");
    }
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      graph::ValueMeta& value = placeholders[i]->meta.value;
      if (!value.known()) value = shared_.meta.value_of(inputs[i]);
    }
  }

  Shared& shared_;
  py::object module_;
  std::string path_;  // of this graph among the attributes of the main one
  std::unique_ptr<graph::Graph> graph_;
  NodesByObject nodes_;
  std::map<std::string, std::string> attributes_;  // by target
};

}  // namespace

GraphAndObjects graph_from_module(py::handle module, py::handle example_inputs) {
  if (!is_graph_module(module)) {
    throw UserError("expected a torch.fx.GraphModule, found '" + type_name(module) + "'");
  }
  Shared shared;
  const std::string name = graph::python_identifier(type_name(module));
  shared.class_names.insert(name);
  auto graph = GraphReader(shared, module, "", name).read(example_inputs);
  graph->symbols() = shared.meta.symbols(py::object(module.attr("meta")));
  return {std::move(graph), std::move(shared.objects)};
}

}  // namespace assay::binding
