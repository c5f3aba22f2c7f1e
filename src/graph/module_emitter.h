/// \file One module call on its way to function calls: its constructor's arguments by name, its
/// inputs, its parameters. Internal to graph/inline_modules.cpp and the tables of modules.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/error.h"
#include "graph/graph.h"

namespace assay::graph {

/// How a parameter begins, as torch.nn's reset_parameters() does it.
struct Initial {
  TensorAttribute::Fill fill = TensorAttribute::Fill::zeros;
  double low = 0;
  double high = 1;

  static Initial uniform(double bound) { return {TensorAttribute::Fill::uniform, -bound, bound}; }
  static Initial constant(double value) { return {TensorAttribute::Fill::constant, value}; }
  static Initial normal() { return {TensorAttribute::Fill::randn}; }
  static Initial zeros() { return {}; }
};

class ModuleEmitter {
 public:
  /// `path` is the attribute's, `layers.0`; nodes go before `node`, the call.
  ModuleEmitter(Graph& graph, Node& node, std::string path, const ModuleAttribute& module,
                std::string_view parameters, std::vector<Argument> inputs,
                std::vector<NamedArgument> keyword_inputs);

  const ModuleAttribute& module() const { return module_; }
  const std::string& path() const { return path_; }
  bool is_training() const { return module_.is_training; }
  /// Of its parameters.
  c10::ScalarType dtype() const;

  // The constructor's arguments.
  const Argument& operator[](std::string_view parameter) const;
  std::int64_t integer(std::string_view parameter) const;
  bool truth(std::string_view parameter) const;
  std::string text(std::string_view parameter) const;
  /// One integer `count` times, a list as it is.
  std::vector<std::int64_t> integers(std::string_view parameter, std::size_t count) const;

  // The call's arguments.
  const std::vector<Argument>& inputs() const { return inputs_; }
  const Argument& input(std::size_t position, std::string_view name = {}) const;
  Argument input_or(std::size_t position, std::string_view name, Argument fallback) const;

  /// A tensor of the module; made at its first mention.
  Argument parameter(const std::string& name, const std::vector<std::int64_t>& sizes,
                     Initial initial);
  Argument buffer(const std::string& name, const std::vector<std::int64_t>& sizes, Initial initial,
                  c10::ScalarType dtype = c10::ScalarType::Float);

  Argument call(std::string_view function, std::vector<Argument> args,
                std::vector<NamedArgument> kwargs = {});
  Argument method(std::string_view name, std::vector<Argument> args);
  Argument item(const Argument& sequence, std::int64_t index);

  UserError error(const std::string& message) const;

 private:
  Argument tensor(const std::string& name, TensorAttribute made);
  void finish(Node& made) const;

  Graph& graph_;
  Node& node_;
  std::string path_;
  const ModuleAttribute& module_;
  std::map<std::string, Argument, std::less<>> arguments_;
  std::vector<Argument> inputs_;
  std::vector<NamedArgument> keyword_inputs_;
};

/// A module of torch.nn: its constructor's parameters as Python writes them, and what a call of it
/// computes.
struct ModuleRow {
  std::string_view name;
  std::string_view parameters;
  Argument (*emit)(ModuleEmitter& emitter);
};

/// The table's row for a class of torch.nn, or nullptr.
const ModuleRow* find_layer(std::string_view name);

/// A module that is one function of its inputs.
struct FunctionRow {
  std::string_view name;
  std::string_view parameters;
  std::string_view function;
  /// Which constructor arguments the call passes, by keyword, with commas between: `p, training`.
  /// `training` is the module's mode.
  std::string_view passed;
  std::size_t inputs = 1;
};
const FunctionRow* find_function_module(std::string_view name);

}  // namespace assay::graph
