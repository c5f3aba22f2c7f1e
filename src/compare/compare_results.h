/// \file Compares what two runs of a program gave, part by part. Internal to compare/models.cpp.
#pragma once

#include <cstddef>
#include <string>

#include "compare/models.h"

namespace assay::compare {

/// A difference that rounding may have made: the float64 reference judges it.
bool is_about_numbers(const Comparison& found);

/// What `ignore_non_fp` left out of a comparison.
struct NotCompared {
  std::size_t results = 0;
  std::size_t inputs = 0;
};

/// In a sentence; empty if nothing was left out.
std::string describe(const NotCompared& left_out);

/// True if the tensors of both have equal elements.
bool is_identical(const aten::Value& left, const aten::Value& right);

/// Outputs, gradients, and the inputs after the run. `fp64` is the judge, or nullptr.
Comparison compare_results(const graph::Graph& graph, const Results& reference,
                           const Results& result, const Results* fp64,
                           const TwoModelsOptions& options, NotCompared* left_out = nullptr);

/// What is left to compare of results that are the same: strides and aliasing, as the options say.
Comparison compare_memory(const graph::Graph& graph, const Results& reference,
                          const Results& result, const TwoModelsOptions& options);

/// Nearer to the truth than the first run is not the same as the first run.
Comparison compare_both_ways(const graph::Graph& graph, const Results& one, const Results& other,
                             const Results* fp64, const TwoModelsOptions& options);

/// By PyTorch's rules, relative to the root mean square of each tensor.
Comparison same_relatively(const aten::Value& reference, const aten::Value& result,
                           const aten::Value* fp64, const SameOptions& options);

}  // namespace assay::compare
