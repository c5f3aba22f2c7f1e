/// \file Lowers a half graph (functional ATen calls with metadata) to the loop IR.
///
/// Every operator of the table below becomes kernels whose loops are the node's own dimensions;
/// views become references into their base's buffer; everything else becomes a call of ATen, with
/// the reason. Fusion, which works on the result, is not done here.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "kernels/ir.h"

namespace assay::kernels {

class Call;  // kernels/lowerings/call.h

/// Why a call is not lowered, as a few words for `assay coverage`; nullptr if it is.
using Refusal = const char*;

/// One row of the table of lowerings.
struct Lowering {
  std::string_view op;      ///< `aten::add.Tensor`; without an overload, the default one.
  std::string_view family;  ///< `pointwise`, `reduction`, ...: the file it is in.
  Refusal (*function)(Call& call);
};

/// Every lowering, sorted by operator; `assay coverage` lists it.
std::span<const Lowering> lowerings();

/// Whether there is a row for the node's operator; it may still refuse a call.
bool has_lowering(const graph::Node& node);

/// The loop program of a half graph. It shares the graph, whose nodes its steps mention.
LoopProgram lower(std::shared_ptr<const graph::Graph> half);

}  // namespace assay::kernels
