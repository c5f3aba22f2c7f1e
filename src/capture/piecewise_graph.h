/// \file A graph in pieces that are compiled one by one, for backends that differentiate ahead of
/// time. They take no graph that calls functions of Python: what lies between the calls is
/// compiled, and the calls are made as they are. And inside of what they compile, nothing sees the
/// gradient of a tensor: one that gets a hook ends a piece. Used by compile_segment.cpp.
#pragma once

#include <memory>
#include <vector>

#include "assay/compiler.h"
#include "graph/graph.h"

namespace assay::capture {

using NodeIds = std::vector<graph::NodeId>;

/// Null if the graph has no such call and `last` is empty, or if a piece would end where a mode of
/// torch is not the one that the graph starts with. A piece ends behind each node of `last`.
/// `compile` gets the graph and the inputs of each piece, the first time that the piece runs, from
/// any thread.
std::shared_ptr<const CompiledGraph> make_piecewise(const CompileRequest& request, Compiler compile,
                                                    const NodeIds& last = {});

}  // namespace assay::capture
