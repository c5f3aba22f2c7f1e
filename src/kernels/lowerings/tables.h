/// \file The tables behind kernels/lower.h, one per family; lowerings/table.cpp joins them.
#pragma once

#include <span>

#include "kernels/lower.h"

namespace assay::kernels {

using LoweringTable = std::span<const Lowering>;

LoweringTable unary_lowerings();
LoweringTable binary_lowerings();
LoweringTable comparison_lowerings();
LoweringTable ternary_lowerings();
LoweringTable creation_lowerings();
LoweringTable copy_lowerings();
LoweringTable reduction_lowerings();
LoweringTable scan_lowerings();
LoweringTable join_lowerings();
LoweringTable loss_lowerings();
LoweringTable gather_lowerings();
LoweringTable scatter_lowerings();
LoweringTable pooling_lowerings();
LoweringTable resampling_lowerings();

}  // namespace assay::kernels
