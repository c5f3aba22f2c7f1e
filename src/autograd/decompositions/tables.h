/// \file The tables behind autograd/decompositions.h, one per theme; decompositions/find.cpp joins
/// them.
#pragma once

#include <span>

#include "autograd/decompositions.h"

namespace assay::autograd {

using DecompositionTable = std::span<const Decomposition>;

DecompositionTable activation_decompositions();
DecompositionTable activation_backward_decompositions();
DecompositionTable batch_norm_decompositions();
DecompositionTable creation_decompositions();
DecompositionTable indexing_decompositions();
DecompositionTable loss_decompositions();
DecompositionTable loss_backward_decompositions();
DecompositionTable matmul_decompositions();
DecompositionTable nll_loss_decompositions();
DecompositionTable norm_decompositions();
DecompositionTable normalisation_decompositions();
DecompositionTable pointwise_decompositions();
DecompositionTable reduction_decompositions();
DecompositionTable rearrangement_decompositions();
DecompositionTable resampling_decompositions();
DecompositionTable softmax_decompositions();
DecompositionTable special_function_decompositions();
DecompositionTable view_decompositions();

}  // namespace assay::autograd
