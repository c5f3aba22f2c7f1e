/// \file What the graph room's passes and verifier ask about calls, answered from operators'
/// records and schemas.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"
#include "graph/pass_manager.h"

namespace assay::aten {

/// The part of a call's record (aten/operator_record.h) that passes on graphs use.
graph::CallFacts call_facts(const graph::Node& node);

/// What is wrong with the call of an operator: it is unknown, or an argument does not fit.
std::optional<std::string> check_call(const graph::Node& node);

/// Pass options that know the operators, with the environment's switches.
graph::PassOptions pass_options();

/// The same for a graph that may come from a file and call operators this process does not have. A
/// pass is not blamed for calls that were wrong before it: then only the structure is verified.
graph::PassOptions pass_options_for(const graph::Graph& input);

}  // namespace assay::aten
