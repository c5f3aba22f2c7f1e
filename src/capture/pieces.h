/// \file A graph that runs in pieces, one after the other, each compiled for itself when it first
/// runs. Where it is cut: piecewise_graph.h, fixed_parts.h.
#pragma once

#include <memory>
#include <vector>

#include "assay/compiler.h"
#include "graph/graph.h"

namespace assay::capture {

/// Neighboring nodes of a graph.
struct Piece {
  enum class Kind {
    compiled,  ///< For the inputs it is given, guarded; for others, again.
    as_it_is,  ///< Runs operator by operator, for any inputs.
  };
  std::vector<const graph::Node*> nodes;
  Kind kind = Kind::compiled;
};

/// A call of a function of Python (python_calls.h), which no backend takes.
bool is_python_call(const graph::Node& node);

/// A node and, if its result is a list or tuple, the nodes that take it apart: between pieces there
/// are tensors and numbers only.
void append_with_items(const graph::Node& node, std::vector<const graph::Node*>& nodes);

/// Whether grad mode and autocast are what they are where the graph starts wherever a piece ends:
/// pieces know of no others.
bool keep_modes(const graph::Graph& graph, const std::vector<Piece>& pieces);

/// Whether all results of the graph are results of its calls, or inputs.
bool gives_nodes(const graph::Graph& graph);

/// `compile` gets the graph and the inputs of a piece when it first runs, from any thread.
std::shared_ptr<const CompiledGraph> run_in_pieces(const CompileRequest& request, Compiler compile,
                                                   const std::vector<Piece>& pieces);

}  // namespace assay::capture
