/// \file Inputs written as one string, as collections of cut-out graphs have them:
///
///   _shapes_config = "(T([8, 64], f32, stride=(1, 8)), T([], i64), S([8, 8, 8]))"
///
/// Called by repro/repro_file.cpp.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/argument.h"
#include "graph/meta.h"

namespace assay::repro {

/// A tensor, or a list of sizes.
using ShapesEntry = std::variant<graph::TensorMeta, graph::Argument>;

/// Nothing if the text says anything else than tensors and sizes.
std::optional<std::vector<ShapesEntry>> parse_shapes_config(std::string_view text);

}  // namespace assay::repro
