/// \file What operators' schemas say about a graph's calls, for passes and the verifier.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"
#include "graph/pass_manager.h"

namespace c10 {
class OperatorHandle;
}

namespace assay::aten {

/// True if the call only computes: no argument is written to, no random number drawn, no check
/// made. False if not known.
bool is_pure(const graph::Node& node);
bool is_pure_operator(const c10::OperatorHandle& op);

/// What is wrong with the call of an operator: it is unknown, or an argument does not fit.
std::optional<std::string> check_call(const graph::Node& node);

/// Pass options that know the operators, with the environment's switches.
graph::PassOptions pass_options();

}  // namespace assay::aten
