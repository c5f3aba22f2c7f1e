/// \file Inputs that are sizes and not described: `forward(self, x: "f32[6, 4]", _shape_param_0)`.
/// Tools that cut graphs out of larger ones pass the sizes of a reshape as inputs. Called by
/// repro/repro_file.cpp.
#pragma once

#include "graph/graph.h"

namespace assay::repro {

/// Where an input that nothing describes is the list of sizes of calls whose results are annotated,
/// it becomes that list, and the input goes.
void bake_in_shapes(graph::Graph& graph);

/// Makes an input the list `sizes` wherever it is used, and removes it.
void bake_in(graph::Graph& graph, graph::Node& placeholder, const graph::Argument& sizes);

}  // namespace assay::repro
