/// \file What capture logs while it records: the instructions (TORCH_LOGS=+dynamo), the steps, and
/// the captured graph as a table. Called by the driver.
#pragma once

#include <string>
#include <vector>

#include "capture/activation.h"
#include "capture/code_facts.h"
#include "capture/ref.h"
#include "graph/graph.h"

namespace assay::capture {

/// "Step 1: torchdynamo `what` FUNCTION FILE:LINE" at INFO.
void log_step(const char* what, const CodeLine& place);

/// With the setting `suppress_errors`: a failure that is reported instead of raised, at WARNING.
void log_suppressed(const Ref& error, const CodeLine& place);

/// The instruction that is about to be recorded, at DEBUG. Costs a comparison when nobody listens.
void log_instruction(const Activation& a);

/// The nodes as rows of opcode, name, target and arguments (TORCH_LOGS=graph).
std::string graph_table(const graph::Graph& graph);

/// The lines from `root` to the innermost frame that is executed, that one last.
std::vector<CodeLine> lines_since(const Activation& root);
/// The same from the outermost frame of the thread.
std::vector<CodeLine> whole_stack(const Activation& root);

}  // namespace assay::capture
