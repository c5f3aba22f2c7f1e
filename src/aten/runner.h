/// \file Runs a graph with ATen, freeing each value at its last use. No Python is needed.
///
/// The graph is planned once (operators found, constants converted, last uses marked) and may then
/// be run many times, also from several threads at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "aten/value.h"
#include "graph/graph.h"
#include "graph/python_lexer.h"

namespace assay::aten {

/// An operator of the graph raised while running: the program under test failed.
class OperatorError : public std::runtime_error {
 public:
  OperatorError(const graph::Node& node, std::string message);

  const std::string& node_name() const { return node_name_; }
  const std::string& call() const { return call_; }
  /// The operator's own message, without where it was called from.
  const std::string& message() const { return message_; }
  /// Where in the user's program the call is, outermost first.
  const std::vector<graph::StackFrame>& stack() const { return stack_; }
  const std::string& target() const { return target_; }
  /// The nodes of earlier stages that the failing one was made of.
  const graph::Provenance& provenance() const { return provenance_; }

 private:
  std::string node_name_;
  std::vector<graph::StackFrame> stack_;
  std::string target_;
  graph::Provenance provenance_;
  std::string call_;
  std::string message_;
};

/// Called after each node with the value it produced.
using NodeObserver = std::function<void(const graph::Node&, const Value&)>;

struct RunPlan;  // aten/plan.h

class GraphRunner {
 public:
  /// Plans `graph`, which must outlive the runner (as must `source`). Throws `UserError` if a
  /// target is unknown or an operator's arguments do not fit its schema; with `source`, the error
  /// shows the node's line. Attributes with random contents are drawn from the default generator
  /// here.
  explicit GraphRunner(const graph::Graph& graph, const graph::python::Source* source = nullptr);
  ~GraphRunner();
  GraphRunner(GraphRunner&&) noexcept;

  /// Runs with one value per placeholder (fewer where placeholders have defaults). Throws
  /// `OperatorError` if an operator raises, `UserError` if a Python-level call cannot be made.
  Value run(std::vector<Value> inputs, const NodeObserver& observer = {}) const;
  /// The same for a graph that takes tensors and returns a flat list or tuple of tensors and None,
  /// which becomes an undefined tensor.
  std::vector<at::Tensor> run_tensors(std::vector<at::Tensor> inputs) const;

 private:
  std::unique_ptr<const RunPlan> plan_;
};

/// The metadata of a value: tensor properties, integer, or several values.
graph::ValueMeta describe(const Value& value);

/// Runs the graph once and fills in every node's value metadata.
void propagate_metadata(graph::Graph& graph, std::vector<Value> inputs,
                        const graph::python::Source* source = nullptr);

}  // namespace assay::aten
