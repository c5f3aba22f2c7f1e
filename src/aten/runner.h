/// \file Runs a graph with ATen, freeing each value at its last use. No Python is needed.
///
/// The graph is planned once (operators found, constants converted, last uses marked) and may then
/// be run many times, also from several threads at once. What a run needs besides its values is
/// kept for the next one, so a call allocates nothing of its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "assay/compiler.h"
#include "assay/error.h"
#include "aten/value.h"
#include "graph/graph.h"
#include "graph/python_lexer.h"

namespace assay::aten {

/// An operator of the graph raised while running: the program under test failed.
class OperatorError : public std::runtime_error, public Error {
 public:
  /// `raised` is the exception's class in Python: RuntimeError, IndexError, ...
  OperatorError(const graph::Node& node, std::string message, std::string raised = "RuntimeError");

  const char* python_class() const noexcept override { return "OperatorError"; }

  const std::string& node_name() const { return node_name_; }
  const std::string& call() const { return call_; }
  /// The operator's own message, without where it was called from.
  const std::string& message() const { return message_; }
  /// Where in the user's program the call is, outermost first.
  const std::vector<graph::StackFrame>& stack() const { return stack_; }
  const std::string& target() const { return target_; }
  const std::string& raised() const { return raised_; }
  /// The nodes of earlier stages that the failing one was made of.
  const graph::Provenance& provenance() const { return provenance_; }

 private:
  std::string node_name_;
  std::vector<graph::StackFrame> stack_;
  std::string target_;
  graph::Provenance provenance_;
  std::string call_;
  std::string message_;
  std::string raised_;
};

/// Called after each node with the value it produced.
using NodeObserver = std::function<void(const graph::Node&, const Value&)>;

struct RunPlan;   // aten/plan.h
struct RunFrame;  // aten/plan.h

class GraphRunner {
 public:
  /// Plans `graph`, which must outlive the runner (as must `source`). Throws `UserError` if a
  /// target is unknown or an operator's arguments do not fit its schema; with `source`, the error
  /// shows the node's line. Attributes with random contents are drawn from the default generator
  /// here. The last placeholders are bound to `bound`, and not passed to runs.
  explicit GraphRunner(const graph::Graph& graph, const graph::python::Source* source = nullptr,
                       std::span<const c10::IValue> bound = {});
  ~GraphRunner();
  GraphRunner(GraphRunner&&) noexcept;

  /// Runs as assay/compiler.h says. Throws `OperatorError` if an operator raises, `UserError` if a
  /// Python-level call cannot be made or the number of inputs is wrong.
  void call(std::span<c10::IValue> inputs, Outputs& outputs,
            const NodeObserver& observer = {}) const;
  /// The same with Python values; fewer where placeholders have defaults.
  Value run(std::vector<Value> inputs, const NodeObserver& observer = {}) const;

 private:
  std::unique_ptr<RunFrame> take_frame() const;
  void keep_frame(std::unique_ptr<RunFrame> frame) const;

  std::unique_ptr<const RunPlan> plan_;
  mutable std::atomic<RunFrame*> idle_frame_ = nullptr;  // owned
};

/// Runs a graph operator by operator; its last `bound_inputs` are bound. The graph is shared, the
/// source must outlive it.
std::shared_ptr<const CompiledGraph> run_with_aten(const CompileRequest& request);

/// The metadata of a value: tensor properties, integer, or several values.
graph::ValueMeta describe(const Value& value);

/// Runs the graph once and fills in every node's value metadata.
void propagate_metadata(graph::Graph& graph, std::vector<Value> inputs,
                        const graph::python::Source* source = nullptr);

}  // namespace assay::aten
