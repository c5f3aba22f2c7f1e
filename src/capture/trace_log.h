/// \file What capture logs while it records: instructions and source lines (TORCH_LOGS=+dynamo),
/// the steps, the captured graph, and effects. Called by the driver and the recorder.
#pragma once

#include <string>
#include <vector>

#include "capture/activation.h"
#include "capture/code_facts.h"
#include "capture/ref.h"
#include "capture/segment.h"
#include "graph/graph.h"

namespace assay::capture {

/// "Step 1: torchdynamo `what` FUNCTION FILE:LINE" at INFO.
void log_step(const char* what, const CodeLine& place);

/// With the setting `suppress_errors`: a failure that is reported instead of raised, at WARNING.
void log_suppressed(const Ref& error, const CodeLine& place);

/// The instruction that is about to be recorded with the types on its stack (trace_bytecode), and
/// its source line where that is a new one (trace_source). Costs two comparisons when nobody
/// listens.
void log_instruction(const Activation& a);

/// The nodes as rows of opcode, name, target and arguments (TORCH_LOGS=graph).
std::string graph_table(const graph::Graph& graph);

/// The sizes of the graph's tensors (TORCH_LOGS=graph_sizes).
std::string graph_sizes(const graph::Graph& graph);

/// The instructions of a function as the module `dis` prints them (TORCH_LOGS=bytecode).
void log_bytecode(PyCodeObject* code);

/// The user's line that is executed; empty unless TORCH_LOGS=side_effects.
std::string line_of_effect();
/// An effect in words. `target` is the expression of what is changed; empty: it has none. `key` may
/// be null.
std::string describe_effect(Effect::Kind kind, std::string target, PyObject* key,
                            const std::string& line);

/// The lines from `root` to the innermost frame that is executed, that one last.
std::vector<CodeLine> lines_since(const Activation& root);
/// The same from the outermost frame of the thread.
std::vector<CodeLine> whole_stack(const Activation& root);

}  // namespace assay::capture
