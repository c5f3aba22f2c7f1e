/// \file A function as a graph: runs it once on copies of its inputs and records the calls it makes
/// above autograd, as the user wrote them. The C++ front end and `assay.aot.trace` begin here, and
/// backends lower graphs of Python-level calls with it.
///
/// What the function does besides calling operators is not seen: numbers it reads from elsewhere
/// are constants of the graph. Tensors it reads from elsewhere become inputs of the graph.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "aten/value.h"
#include "graph/graph.h"

namespace assay::aten {

using Function = std::function<Value(const std::vector<Value>&)>;

struct RecordedCalls {
  /// Placeholders: one per input, then one per captured tensor.
  std::unique_ptr<graph::Graph> graph;
  std::vector<at::Tensor> tensors;  ///< The captured tensors.
};

struct RecordCallsOptions {
  /// Names the graph; `<lambda>` becomes a name that its text form can have.
  std::string name = "GraphModule";
  /// Names of the inputs' placeholders; made up where there are fewer.
  std::vector<std::string> input_names;
  /// Where in the user's program the call being made stands. Asked for every call.
  std::function<graph::StackTrace()> stack;
  /// Told every node that stands for a call, or an item of its results, as it is made.
  std::function<void(graph::Node&)> listener;
  /// The same as text for an error's message; asked only then.
  std::function<std::string()> where;
  /// Whether anybody but the caller holds this tensor; its reference count by default.
  std::function<bool(const at::Tensor&)> is_held_elsewhere;
};

/// Neither the inputs nor captured tensors nor the random generator are changed by it. Throws
/// `TraceError` if the function does something a graph cannot hold: reads values of tensors, calls
/// backward(), uses a custom autograd function. What the function throws passes through.
RecordedCalls record_calls(const Function& function, const std::vector<Value>& inputs,
                           const RecordCallsOptions& options = {});

/// True while this thread runs a function to capture it.
bool is_recording_calls();

}  // namespace assay::aten
