#include "backends/torchscript_graph.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "aten/convert.h"
#include "aten/match.h"
#include "aten/operator_record.h"
#include "aten/operators.h"
#include "aten/plan.h"
#include "backends/error.h"
#include "graph/print.h"

namespace assay::backends {

namespace {

using graph::Argument;
using graph::Node;
namespace jit = torch::jit;

bool mentions_node(const Argument& argument) {
  bool found = false;
  argument.for_each_node([&](const Node&) { found = true; });
  return found;
}

// The type of a list's items, through `List[...]?`.
c10::TypePtr item_type(const c10::TypePtr& type) {
  if (auto optional = type->cast<c10::OptionalType>()) return item_type(optional->getElementType());
  auto list = type->cast<c10::ListType>();
  return list == nullptr ? nullptr : list->getElementType();
}

class Converter {
 public:
  Converter(const graph::Graph& graph, std::string_view backend)
      : graph_(graph), backend_(backend) {
    made_.graph = std::make_shared<jit::Graph>();
  }

  TorchScriptGraph convert() {
    const auto placeholders = graph_.placeholders();
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      if (placeholders[i]->users().empty()) continue;
      made_.inputs.push_back(i);
      values_[placeholders[i]] = {made_.graph->addInput(placeholders[i]->name())};
    }
    for (const Node& node : graph_.nodes()) {
      if (node.op() == graph::Op::placeholder || node.op() == graph::Op::output) continue;
      convert_call(node);
    }
    const auto add_output = [&](const Node& node) {
      if (std::ranges::find(made_.outputs, &node) != made_.outputs.end()) return;
      made_.outputs.push_back(&node);
      made_.graph->registerOutput(one_value(node, node));
    };
    graph_.output()->args()[0].for_each_node(add_output);
    for (jit::Value* value : random_) made_.graph->registerOutput(value);
    made_.graph->lint();
    return std::move(made_);
  }

 private:
  [[noreturn]] void refuse(const Node& node, const std::string& why) const {
    throw BackendError(backend_,
                       "node '" + node.name() + "' cannot be converted to TorchScript: " + why +
                           "\n  in " + node.name() + " = " + graph::print_call(node),
                       node.name(), node.meta.provenance);
  }

  jit::Value* one_value(const Node& node, const Node& user) const {
    const auto& values = values_.at(&node);
    if (values.size() != 1) refuse(user, "it uses several results as one value");
    return values[0];
  }

  void convert_call(const Node& node) {
    if (node.calls("operator.getitem")) {
      values_[&node] = {item(node)};
    } else if (node.calls("torch._C._set_grad_enabled")) {
      jit::Value* mode = made_.graph->insertConstant(*node.args()[0].get_if<bool>());
      add(node, c10::Symbol::fromQualString("aten::set_grad_enabled"), {mode}, 0);
    } else if (const auto op = aten::find_operator(node.target())) {
      convert_operator(node, *op);
    } else {
      refuse(node, "it is not an operator call");
    }
  }

  jit::Value* item(const Node& node) {
    const Node* container = node.args()[0].node();
    const auto* index = node.args()[1].get_if<std::int64_t>();
    if (container == nullptr || index == nullptr)
      refuse(node, "the index of an item must be an integer constant");
    const auto& values = values_.at(container);
    if (values.size() > 1) {
      const auto count = static_cast<std::int64_t>(values.size());
      if (*index < -count || *index >= count) refuse(node, "the index is out of range");
      return values[static_cast<std::size_t>(*index < 0 ? *index + count : *index)];
    }
    jit::Value* at = made_.graph->insertConstant(*index);
    jit::Node* made =
        add(node, c10::Symbol::fromQualString("aten::__getitem__"), {values[0], at}, 1);
    if (auto type = item_type(values[0]->type())) made->output()->setType(type);
    return made->output();
  }

  void convert_operator(const Node& node, const c10::OperatorHandle& op) {
    const c10::FunctionSchema& schema = op.schema();
    aten::CallShape shape;
    shape.positional = node.args().size();
    for (const auto& argument : node.kwargs()) shape.keywords.emplace_back(argument.name);
    std::string why;
    const auto bindings = aten::bind_schema(schema, shape, aten::Dialect::operator_call, why);
    if (!bindings) refuse(node, why);
    std::vector<jit::Value*> inputs;
    for (std::size_t i = 0; i < bindings->size(); ++i) {
      const aten::Binding& binding = (*bindings)[i];
      if (binding.source == aten::Binding::Source::default_value) {
        const auto& value = schema.arguments()[i].default_value();
        inputs.push_back(constant(node, schema, i, value ? *value : c10::IValue()));
      } else {
        const bool is_keyword = binding.source == aten::Binding::Source::keyword;
        inputs.push_back(
            input(node, schema, i,
                  is_keyword ? node.kwargs()[binding.index].value : node.args()[binding.index]));
      }
    }
    jit::Node* made =
        add(node, c10::Symbol::fromQualString(schema.name()), inputs, schema.returns().size());
    for (std::size_t i = 0; i < schema.returns().size(); ++i) {
      made->output(i)->setType(schema.returns()[i].type());
    }
    check_overload(node, *made, schema);
    values_[&node] = made->outputs().vec();
    if (aten::operator_record(op).is_random) {
      random_.insert(random_.end(), made->outputs().begin(), made->outputs().end());
    }
  }

  // TorchScript chooses an operator by name and types; it must be the one that the graph names.
  void check_overload(const Node& node, const jit::Node& made, const c10::FunctionSchema& schema) {
    const c10::FunctionSchema* found = made.maybeSchema();
    if (found == nullptr) refuse(node, "TorchScript has no operator for these types");
    if (found->overload_name() != schema.overload_name()) {
      refuse(node, "TorchScript would call the overload '" + found->overload_name() +
                       "' instead of '" + schema.overload_name() + "'");
    }
  }

  jit::Value* input(const Node& node, const c10::FunctionSchema& schema, std::size_t position,
                    const Argument& argument) {
    if (const Node* mentioned = argument.node()) return one_value(*mentioned, node);
    if (mentions_node(argument)) {
      const c10::TypePtr type = item_type(schema.arguments()[position].type());
      if (type == nullptr) refuse(node, "an argument is a list where none is expected");
      std::vector<jit::Value*> items;
      for (const Argument& item : argument.items()) {
        if (const Node* mentioned = item.node()) {
          items.push_back(one_value(*mentioned, node));
        } else {
          items.push_back(made_.graph->insertConstant(aten::constant_value(item).leaf));
        }
      }
      return made_.graph->insertNode(made_.graph->createList(type, items))->output();
    }
    int cost = 0;
    const auto converted = aten::convert(aten::constant_value(argument), schema, position, cost);
    if (!converted) {
      refuse(node, "the argument '" + schema.arguments()[position].name() + "' has the wrong type");
    }
    return constant(node, schema, position, *converted);
  }

  // TorchScript takes no bool for a number, where the operators of Python do.
  jit::Value* constant(const Node& node, const c10::FunctionSchema& schema, std::size_t position,
                       const c10::IValue& value) {
    const c10::Argument& argument = schema.arguments()[position];
    const bool is_full = schema.name() == "aten::full";
    if (is_full && argument.name() == "dtype" && value.isNone() && node.args().size() > 1 &&
        node.args()[1].get_if<bool>() != nullptr) {
      return made_.graph->insertConstant(static_cast<std::int64_t>(c10::kBool));
    }
    if (!value.isBool() || !c10::NumberType::get()->isSubtypeOf(*argument.type())) {
      return made_.graph->insertConstant(value);
    }
    static const std::set<std::string_view> kAlike = {"aten::full",         "aten::full_like",
                                                      "aten::new_full",     "aten::fill",
                                                      "aten::fill_",        "aten::eq",
                                                      "aten::ne",           "aten::masked_fill",
                                                      "aten::masked_fill_", "aten::constant_pad_nd",
                                                      "aten::scalar_tensor"};
    if (!kAlike.contains(schema.name())) refuse(node, "a bool is passed as a number");
    return made_.graph->insertConstant(static_cast<std::int64_t>(value.toBool()));
  }

  // The node's call is the source text, which TorchScript quotes where it fails.
  jit::Node* add(const Node& node, c10::Symbol kind, at::ArrayRef<jit::Value*> inputs,
                 std::size_t outputs) {
    jit::Node* made = made_.graph->create(kind, inputs, outputs);
    const std::string text = node.name() + " = " + graph::print_call(node);
    made->setSourceRange(
        jit::SourceRange(std::make_shared<jit::Source>(text, graph_.name(), 1), 0, text.size()));
    return made_.graph->insertNode(made);
  }

  const graph::Graph& graph_;
  std::string_view backend_;
  TorchScriptGraph made_;
  std::unordered_map<const Node*, std::vector<jit::Value*>> values_;
  std::vector<jit::Value*> random_;
};

}  // namespace

TorchScriptGraph to_torchscript(const graph::Graph& graph, std::string_view backend) {
  return Converter(graph, backend).convert();
}

}  // namespace assay::backends
