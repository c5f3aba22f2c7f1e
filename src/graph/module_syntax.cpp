#include "graph/module_syntax.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "graph/parse.h"
#include "graph/tensor_syntax.h"

namespace assay::graph {

namespace {

using python::Expression;
using python::Source;
using python::Statement;
using Kind = Expression::Kind;

UserError error(const Source& source, const Expression& at, const std::string& message,
                const std::string& hint = {}) {
  return source.error(at.offset, at.end - at.offset, message, hint);
}

const Expression* keyword(const Expression& call, std::string_view name) {
  for (const auto& candidate : call.keywords) {
    if (candidate.name == name) return candidate.value;
  }
  return nullptr;
}

std::string callee(const Expression& expression) {
  return expression.kind == Kind::call ? python::dotted_name(*expression.children[0])
                                       : std::string();
}

bool is_method_call(const Expression& expression) {
  return expression.kind == Kind::call && expression.children[0]->kind == Kind::attribute &&
         expression.children[0]->children[0]->kind == Kind::call;
}

// ---- methods behind a module: .cuda(), .eval(), .half() ----

void convert_module(ModuleAttribute& module, std::optional<c10::ScalarType> dtype,
                    std::optional<bool> is_training) {
  if (dtype) module.dtype = *dtype;
  if (is_training) module.is_training = *is_training;
  if (module.members == nullptr) return;
  auto members = *module.members;
  for (ModuleMember& member : members) convert_module(member.module, dtype, is_training);
  module.members = std::make_shared<const std::vector<ModuleMember>>(std::move(members));
}

// What one call behind a module does; false if Assay does not know it.
bool read_module_method(const Source& source, const Expression& call,
                        std::optional<c10::ScalarType>& dtype, std::optional<bool>& is_training) {
  constexpr std::array<std::string_view, 3> kNoChange = {"requires_grad_", "share_memory",
                                                         "to_empty"};
  const std::string_view method = call.children[0]->text;
  if (method == "eval") {
    is_training = false;
  } else if (method == "train") {
    is_training = call.children.size() < 2 || call.children[1]->magnitude != 0;
  } else if (const auto found = dtype_of_conversion(call)) {
    dtype = found;
  } else if (std::ranges::find(kNoChange, method) == kNoChange.end() &&
             keyword(call, "memory_format") == nullptr && !only_moves(source, call)) {
    return false;
  }
  return true;
}

// ---- constructors ----

ModuleAttribute module_from(const Source& source, const Expression& expression);

// `mode=max`: repr() prints some strings without quotes.
Argument module_argument(const Source& source, const Expression& expression) {
  if (expression.kind == Kind::name && expression.text != "inf" && expression.text != "nan") {
    return std::string(expression.text);
  }
  return constant_from_syntax(source, expression);
}

bool is_module(const Expression& expression) {
  if (expression.kind != Kind::call) return false;
  if (is_method_call(expression)) return true;
  const std::string name = callee(expression);
  return !name.empty() && name != "device" && name != "torch.device" && name != "torch.Size" &&
         name != "slice" && name != "complex" && name != "float" && name != "int";
}

void add_members(const Source& source, const Expression& call, ModuleAttribute& made) {
  std::vector<ModuleMember> members;
  const auto add = [&](std::string name, const Expression& value) {
    members.push_back({std::move(name), module_from(source, value)});
  };
  for (const Expression* argument : call.children.subspan(1)) {
    if (is_module(*argument)) {
      add(std::to_string(members.size()), *argument);
    } else if (argument->kind == Kind::list || argument->kind == Kind::tuple) {
      for (const Expression* item : argument->children) {
        if (is_module(*item)) add(std::to_string(members.size()), *item);
      }
    } else if (argument->kind == Kind::dict) {
      for (std::size_t i = 0; i + 1 < argument->children.size(); i += 2) {
        const Expression& key = *argument->children[i];
        if (key.kind == Kind::string) add(std::string(key.value), *argument->children[i + 1]);
      }
    }
  }
  for (const auto& candidate : call.keywords) {
    if (is_module(*candidate.value)) add(std::string(candidate.name), *candidate.value);
  }
  if (!members.empty()) {
    made.members = std::make_shared<const std::vector<ModuleMember>>(std::move(members));
  }
}

bool holds_modules(const Expression& argument) {
  if (is_module(argument)) return true;
  if (argument.kind != Kind::list && argument.kind != Kind::tuple && argument.kind != Kind::dict) {
    return false;
  }
  return std::ranges::any_of(argument.children,
                             [](const Expression* item) { return is_module(*item); });
}

ModuleAttribute constructed(const Source& source, const Expression& call) {
  ModuleAttribute made;
  made.constructor = callee(call);
  if (made.constructor.empty()) {
    throw error(source, call, "not an attribute Assay can make without running Python",
                "expected a module's constructor or a tensor");
  }
  for (const Expression* argument : call.children.subspan(1)) {
    if (!holds_modules(*argument)) made.args.push_back(module_argument(source, *argument));
  }
  for (const auto& candidate : call.keywords) {
    if (candidate.name.empty()) throw error(source, *candidate.value, "unexpected '**'");
    if (is_module(*candidate.value)) continue;
    made.kwargs.push_back({std::string(candidate.name), module_argument(source, *candidate.value)});
  }
  add_members(source, call, made);
  return made;
}

ModuleAttribute module_from(const Source& source, const Expression& expression) {
  if (expression.kind != Kind::call) {
    throw error(source, expression, "expected a module's constructor");
  }
  if (!is_method_call(expression)) return constructed(source, expression);
  ModuleAttribute made = module_from(source, *expression.children[0]->children[0]);
  std::optional<c10::ScalarType> dtype;
  std::optional<bool> is_training;
  if (!read_module_method(source, expression, dtype, is_training)) {
    throw error(source, expression, "a method of a module that Assay cannot apply without Python");
  }
  convert_module(made, dtype, is_training);
  return made;
}

// ---- parameters and buffers ----

bool is_parameter_name(std::string_view name) {
  return name == "torch.nn.Parameter" || name == "nn.Parameter" || name == "Parameter" ||
         name == "torch.nn.parameter.Parameter";
}

std::optional<TensorAttribute> parameter_from(const Source& source, const Expression& value) {
  if (is_method_call(value)) {  // `Parameter(...).cuda()`
    auto inner = parameter_from(source, *value.children[0]->children[0]);
    if (!inner) return std::nullopt;
    if (const auto dtype = dtype_of_conversion(value)) {
      inner->meta.dtype = *dtype;
    } else if (!only_moves(source, value)) {
      return std::nullopt;
    }
    return inner;
  }
  if (!is_parameter_name(callee(value)) || value.children.size() < 2) return std::nullopt;
  auto tensor = tensor_from_syntax(source, *value.children[1]);
  if (!tensor) {
    throw error(source, *value.children[1], "not a tensor Assay can make without running Python",
                "expected torch.randn([...]), torch.zeros([...]) or tensor([...])");
  }
  const Expression* flag =
      value.children.size() > 2 ? value.children[2] : keyword(value, "requires_grad");
  tensor->is_parameter = true;
  tensor->meta.requires_grad =
      flag == nullptr ? c10::isFloatingType(tensor->meta.dtype) : flag->magnitude != 0;
  return tensor;
}

// register_buffer('name', tensor), register_parameter('name', Parameter(...)),
// add_module('name', Linear(...)).
std::optional<InitStatement> registration(const Source& source, const Expression& call) {
  const std::string function = callee(call);
  const bool is_buffer = function == "self.register_buffer";
  const bool is_parameter = function == "self.register_parameter";
  if (!is_buffer && !is_parameter && function != "self.add_module" &&
      function != "self.register_module") {
    return std::nullopt;
  }
  const Expression* value = call.children.size() > 2 ? call.children[2] : keyword(call, "tensor");
  if (call.children.size() < 2 || call.children[1]->kind != Kind::string || value == nullptr) {
    throw error(source, call, "expected " + function.substr(5) + "('name', value)");
  }
  const std::string name(call.children[1]->value);
  if (value->kind == Kind::none) return NamedArgument{name, Argument()};
  if (is_parameter) {
    if (auto tensor = parameter_from(source, *value)) return Attribute{name, std::move(*tensor)};
  }
  if (is_buffer || is_parameter) {
    auto tensor = tensor_from_syntax(source, *value);
    if (!tensor) {
      throw error(source, *value, "not a tensor Assay can make without running Python",
                  "expected torch.randn([...]), torch.zeros([...]) or tensor([...])");
    }
    return Attribute{name, std::move(*tensor)};
  }
  return Attribute{name, module_from(source, *value)};
}

bool is_ignored(const Statement& statement) {
  if (statement.kind == Statement::Kind::pass) return true;
  if (statement.kind != Statement::Kind::expression) return false;
  const Expression& value = *statement.value;
  if (value.kind == Kind::string || value.kind == Kind::ellipsis) return true;
  return value.kind == Kind::call && value.children[0]->kind == Kind::attribute &&
         (value.children[0]->text == "__init__" || callee(value) == "torch.manual_seed" ||
          callee(value) == "self.load_state_dict");  // it may have other values in another file
}

InitStatement named_value(const Source& source, const std::string& name, const Expression& value) {
  if (value.kind == Kind::missing) {
    return Attribute{name, MissingSubgraph{std::string(value.text)}};
  }
  if (auto tensor = parameter_from(source, value)) return Attribute{name, std::move(*tensor)};
  if (auto tensor = tensor_from_syntax(source, value)) return Attribute{name, std::move(*tensor)};
  if (is_module(value)) return Attribute{name, module_from(source, value)};
  try {
    return NamedArgument{name, constant_from_syntax(source, value)};
  } catch (const UserError&) {
    throw error(source, value, "not an attribute Assay can make without running Python",
                "expected a module's constructor, a tensor or a constant");
  }
}

// setattr(self, 'name', value), as GraphModule.to_folder writes it.
bool is_setattr(const Expression& call) {
  return callee(call) == "setattr" && call.children.size() == 4 &&
         python::dotted_name(*call.children[1]) == "self" && call.children[2]->kind == Kind::string;
}

}  // namespace

InitStatement init_statement_from_syntax(const Source& source, const Statement& statement) {
  if (is_ignored(statement)) return {};
  if (statement.kind == Statement::Kind::expression) {
    const Expression& call = *statement.value;
    if (auto found = registration(source, call)) return std::move(*found);
    if (is_setattr(call)) {
      return named_value(source, std::string(call.children[2]->value), *call.children[3]);
    }
  }
  const bool sets_attribute = statement.kind == Statement::Kind::assign &&
                              statement.targets.size() == 1 &&
                              statement.targets[0]->kind == Kind::attribute &&
                              python::dotted_name(*statement.targets[0]).starts_with("self.");
  if (!sets_attribute) {
    throw source.error(statement.offset, statement.end - statement.offset,
                       "__init__ of a graph cannot contain this statement",
                       "expected 'self.name = Module(...)' or 'self.register_buffer(...)'");
  }
  return named_value(source, python::dotted_name(*statement.targets[0]).substr(5),
                     *statement.value);
}

InitStatement class_statement_from_syntax(const Source& source, const Statement& statement) {
  const bool is_attribute = statement.kind == Statement::Kind::assign &&
                            statement.targets.size() == 1 &&
                            statement.targets[0]->kind == Kind::name;
  if (!is_attribute) return {};
  try {
    return named_value(source, std::string(statement.targets[0]->text), *statement.value);
  } catch (const UserError&) {
    return {};  // of the user's own; an error only where forward() reads it
  }
}

void apply_module_methods(const Source& source, const Expression& expression, Graph& graph) {
  if (!is_method_call(expression)) return;
  apply_module_methods(source, *expression.children[0]->children[0], graph);
  std::optional<c10::ScalarType> dtype;
  std::optional<bool> is_training;
  if (!read_module_method(source, expression, dtype, is_training)) return;
  for (Attribute& attribute : graph.attributes()) {
    if (auto* module = std::get_if<ModuleAttribute>(&attribute.value)) {
      convert_module(*module, dtype, is_training);
    } else if (auto* tensor = std::get_if<TensorAttribute>(&attribute.value);
               tensor != nullptr && dtype && c10::isFloatingType(tensor->meta.dtype)) {
      tensor->meta.dtype = *dtype;
    }
  }
}

}  // namespace assay::graph
