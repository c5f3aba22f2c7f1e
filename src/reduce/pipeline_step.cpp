#include "reduce/pipeline_step.h"

#include <ranges>

#include "kernels/compile.h"

namespace assay::reduce {

std::string find_pipeline_step(const std::string& text, Judge& judge) {
  if (judge.base().backend != "native" || judge.base().is_command()) return {};
  const auto fails_without = [&](const std::string& steps) {
    judge.base().disable_passes = steps;
    const bool fails = judge.count_wanted(text, 1) > 0;
    judge.base().disable_passes.clear();
    return fails;
  };
  std::string all;
  for (const std::string_view step : kernels::kOptionalSteps | std::views::reverse) {
    if (!fails_without(std::string(step))) return std::string(step);
    all += (all.empty() ? "" : ",") + std::string(step);
  }
  // Several that do the same harm cannot be told apart.
  return fails_without(all) ? std::string(kernels::kFirstStep) : std::string();
}

}  // namespace assay::reduce
