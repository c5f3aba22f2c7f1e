/// \file A few numbers that describe a result, for `assay run`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aten/value.h"

namespace assay::cli {

/// One tensor (or other value) among a graph's results.
struct OutputSummary {
  std::string name;  ///< `0`, `1.hidden`, ...: its place in the results.
  std::string type;  ///< `f32[10, 10][10, 1]cpu`, `int`, `None`
  bool is_tensor = false;
  double mean = 0;
  double smallest = 0;
  double largest = 0;
  std::int64_t elements = 0;
  std::int64_t nans = 0;
  std::int64_t infinities = 0;
  std::string text;  ///< The value itself where it is a plain number.
};

std::vector<OutputSummary> summarize(const aten::Value& results);

std::string as_table(const std::vector<OutputSummary>& outputs);
nlohmann::json as_json(const std::vector<OutputSummary>& outputs);

}  // namespace assay::cli
