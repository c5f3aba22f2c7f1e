#include "repro/accuracy.h"

#include "compare/models.h"
#include "observe/observe.h"

namespace assay::repro {

std::optional<std::string> find_difference(const graph::Graph& graph,
                                           const compare::Callable& compiled,
                                           const std::vector<aten::Value>& inputs,
                                           const DebugConfig& config, bool forward_only) {
  compare::TwoModelsOptions options;
  options.only_forward = forward_only;
  options.same.tol = config.tolerance;
  options.same.ignore_non_fp = config.repro_ignore_non_fp;
  const compare::TwoModels models = compare::same_two_models(graph, compiled, inputs, options);
  if (models.eager_failed) {
    observe::log(observe::Component::repro, observe::Level::warning, [&] {
      return "accuracy was not checked, because eager fails too: " + models.eager_error;
    });
    return std::nullopt;
  }
  if (!models.not_compared.empty()) {
    observe::log(observe::Component::repro, observe::Level::info,
                 [&] { return models.not_compared; });
  }
  if (models.same()) return std::nullopt;
  const compare::Comparison& found = models.comparison;
  return found.where.empty() ? found.message : found.where + ": " + found.message;
}

}  // namespace assay::repro
