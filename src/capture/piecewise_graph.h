/// \file A graph that calls functions of Python, in pieces: what lies between the calls is
/// compiled, and the calls are made as they are. For backends that cannot take such a graph as a
/// whole, since they differentiate ahead of time. Used by compile_segment.cpp.
#pragma once

#include <memory>

#include "assay/compiler.h"

namespace assay::capture {

/// Null if the graph has no such call, or makes one where a mode of torch is not the one that the
/// graph starts with. `compile` gets the graph and the inputs of each piece, the first time that
/// the piece runs, from any thread.
std::shared_ptr<const CompiledGraph> make_piecewise(const CompileRequest& request,
                                                    Compiler compile);

}  // namespace assay::capture
