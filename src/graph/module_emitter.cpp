#include "graph/module_emitter.h"

#include <algorithm>

#include "graph/parse.h"

namespace assay::graph {

namespace {

// `in_features, out_features, bias=True` as names and default values.
struct Parameter {
  std::string name;
  std::optional<Argument> fallback;
};

std::vector<Parameter> read_parameters(std::string_view text) {
  const python::Source source{"parameters", "call(" + std::string(text) + ")"};
  python::Module module;
  const python::Expression* call = python::parse_expression(source, module);
  std::vector<Parameter> made;
  for (const python::Expression* name : call->children.subspan(1)) {
    made.push_back({std::string(name->text), std::nullopt});
  }
  for (const auto& keyword : call->keywords) {
    made.push_back({std::string(keyword.name), constant_from_syntax(source, *keyword.value)});
  }
  return made;
}

}  // namespace

ModuleEmitter::ModuleEmitter(Graph& graph, Node& node, std::string path,
                             const ModuleAttribute& module, std::string_view parameters,
                             std::vector<Argument> inputs,
                             std::vector<NamedArgument> keyword_inputs)
    : graph_(graph),
      node_(node),
      path_(std::move(path)),
      module_(module),
      inputs_(std::move(inputs)),
      keyword_inputs_(std::move(keyword_inputs)) {
  const std::vector<Parameter> known = read_parameters(parameters);
  if (module.args.size() > known.size()) throw error("takes fewer arguments");
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i < module.args.size()) {
      arguments_.emplace(known[i].name, module.args[i]);
    } else if (known[i].fallback) {
      arguments_.emplace(known[i].name, *known[i].fallback);
    }
  }
  for (const NamedArgument& given : module.kwargs) {
    if (given.name == "device") continue;
    if (std::ranges::find(known, given.name, &Parameter::name) == known.end()) {
      throw error("has no argument '" + given.name + "'");
    }
    arguments_.insert_or_assign(given.name, given.value);
  }
  for (const Parameter& parameter : known) {
    if (!arguments_.contains(parameter.name)) {
      throw error("needs the argument '" + parameter.name + "'");
    }
  }
}

UserError ModuleEmitter::error(const std::string& message) const {
  return UserError("the module '" + path_ + "', a " + module_.constructor + ", " + message);
}

const Argument& ModuleEmitter::operator[](std::string_view parameter) const {
  const auto found = arguments_.find(parameter);
  internal_check(found != arguments_.end(), "a module's row names its parameters");
  return found->second;
}

std::int64_t ModuleEmitter::integer(std::string_view parameter) const {
  const Argument& value = (*this)[parameter];
  if (const auto* number = value.get_if<std::int64_t>()) return *number;
  if (value.items().size() == 1) {
    if (const auto* number = value.items()[0].get_if<std::int64_t>()) return *number;
  }
  throw error("needs an integer as '" + std::string(parameter) + "'");
}

bool ModuleEmitter::truth(std::string_view parameter) const {
  const Argument& value = (*this)[parameter];
  if (const auto* flag = value.get_if<bool>()) return *flag;
  if (const auto* number = value.get_if<std::int64_t>()) return *number != 0;
  throw error("needs True or False as '" + std::string(parameter) + "'");
}

std::string ModuleEmitter::text(std::string_view parameter) const {
  if (const auto* found = (*this)[parameter].get_if<std::string>()) return *found;
  throw error("needs a string as '" + std::string(parameter) + "'");
}

std::vector<std::int64_t> ModuleEmitter::integers(std::string_view parameter,
                                                  std::size_t count) const {
  const Argument& value = (*this)[parameter];
  if (const auto* number = value.get_if<std::int64_t>()) {
    return std::vector<std::int64_t>(count, *number);
  }
  std::vector<std::int64_t> made;
  for (const Argument& item : value.items()) {
    const auto* number = item.get_if<std::int64_t>();
    if (number == nullptr) throw error("needs integers as '" + std::string(parameter) + "'");
    made.push_back(*number);
  }
  if (count != 0 && made.size() != count) {
    throw error("needs " + std::to_string(count) + " integers as '" + std::string(parameter) + "'");
  }
  return made;
}

const Argument& ModuleEmitter::input(std::size_t position, std::string_view name) const {
  if (position < inputs_.size()) return inputs_[position];
  for (const NamedArgument& given : keyword_inputs_) {
    if (given.name == name || (name.empty() && keyword_inputs_.size() == 1)) return given.value;
  }
  throw error("is called with too few arguments");
}

Argument ModuleEmitter::input_or(std::size_t position, std::string_view name,
                                 Argument fallback) const {
  if (position < inputs_.size()) return inputs_[position];
  for (const NamedArgument& given : keyword_inputs_) {
    if (given.name == name) return given.value;
  }
  return fallback;
}

c10::ScalarType ModuleEmitter::dtype() const {
  if (module_.dtype) return *module_.dtype;
  const auto found = arguments_.find("dtype");
  const auto* given = found == arguments_.end() ? nullptr : found->second.get_if<c10::ScalarType>();
  return given == nullptr ? c10::ScalarType::Float : *given;
}

Argument ModuleEmitter::parameter(const std::string& name, const std::vector<std::int64_t>& sizes,
                                  Initial initial) {
  TensorAttribute made;
  made.is_parameter = true;
  made.meta.requires_grad = true;
  made.meta.dtype = dtype();
  made.fill = initial.fill;
  made.low = initial.low;
  made.high = initial.high;
  for (const std::int64_t size : sizes) made.meta.sizes.emplace_back(size);
  return tensor(name, std::move(made));
}

Argument ModuleEmitter::buffer(const std::string& name, const std::vector<std::int64_t>& sizes,
                               Initial initial, c10::ScalarType dtype) {
  TensorAttribute made;
  made.meta.dtype = c10::isFloatingType(dtype) ? this->dtype() : dtype;
  made.fill = initial.fill;
  made.low = initial.low;
  made.high = initial.high;
  for (const std::int64_t size : sizes) made.meta.sizes.emplace_back(size);
  return tensor(name, std::move(made));
}

Argument ModuleEmitter::tensor(const std::string& name, TensorAttribute made) {
  for (const SizeExpr& size : made.meta.sizes) {
    if (*size.constant() < 0) throw error("has a negative size");
  }
  made.meta.strides = contiguous_strides(made.meta.sizes);
  std::string attribute = path_ + "_" + name;
  std::ranges::replace(attribute, '.', '_');
  const bool is_known = std::ranges::any_of(
      graph_.attributes(), [&](const Attribute& existing) { return existing.name == attribute; });
  if (!is_known) graph_.attributes().push_back({attribute, std::move(made)});
  const Graph::InsertBefore here(graph_, node_);
  Node& read = graph_.get_attr(attribute);
  finish(read);
  return &read;
}

Argument ModuleEmitter::call(std::string_view function, std::vector<Argument> args,
                             std::vector<NamedArgument> kwargs) {
  const Graph::InsertBefore here(graph_, node_);
  Node& made =
      graph_.call_function(Target(std::string(function)), std::move(args), std::move(kwargs));
  finish(made);
  return &made;
}

Argument ModuleEmitter::method(std::string_view name, std::vector<Argument> args) {
  const Graph::InsertBefore here(graph_, node_);
  Node& made = graph_.call_method(std::string(name), std::move(args));
  finish(made);
  return &made;
}

Argument ModuleEmitter::item(const Argument& sequence, std::int64_t index) {
  return call("operator.getitem", {sequence, index});
}

void ModuleEmitter::finish(Node& made) const {
  made.meta.stack = node_.meta.stack;
  made.meta.provenance = node_.meta.provenance;
  made.meta.text_offset = node_.meta.text_offset;
}

}  // namespace assay::graph
