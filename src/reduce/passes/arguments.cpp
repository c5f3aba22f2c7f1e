// Simpler constants in calls: a keyword left out, the last argument left out, False for True, and
// for numbers 0 or 1.
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

using graph::Argument;

// One place in one call, and what to put there; nothing: leave it out.
struct Change {
  const graph::Node* node = nullptr;
  bool is_keyword = false;
  std::size_t position = 0;
  std::optional<Argument> replacement = {};
};

std::vector<Argument> simpler_constants(const Argument& argument) {
  if (const bool* flag = argument.get_if<bool>()) {
    return *flag ? std::vector<Argument>{false} : std::vector<Argument>{};
  }
  if (const auto* number = argument.get_if<std::int64_t>()) {
    if (*number == 0) return {};
    if (*number == 1) return {std::int64_t{0}};
    return {std::int64_t{0}, std::int64_t{1}};
  }
  if (const double* number = argument.get_if<double>()) {
    if (*number == 0.0 || *number == 1.0) return {};
    return {0.0, 1.0};
  }
  return {};
}

std::vector<Change> all_changes(const graph::Graph& graph) {
  std::vector<Change> changes;
  for (const graph::Node& node : graph.nodes()) {
    if (!node.is_call()) continue;
    for (std::size_t i = 0; i < node.kwargs().size(); ++i) {
      changes.push_back({&node, true, i, std::nullopt});
      for (Argument& simpler : simpler_constants(node.kwargs()[i].value)) {
        changes.push_back({&node, true, i, std::move(simpler)});
      }
    }
    for (std::size_t i = node.args().size(); i-- > 1;) {
      if (i + 1 == node.args().size()) changes.push_back({&node, false, i, std::nullopt});
      for (Argument& simpler : simpler_constants(node.args()[i])) {
        changes.push_back({&node, false, i, std::move(simpler)});
      }
    }
  }
  return changes;
}

std::optional<Candidate> propose_arguments(const Candidate& program, std::size_t, std::size_t index,
                                           repro::ContentStore&) {
  const Change change = all_changes(*program.graph)[index];
  Edit edit(program);
  graph::Node& node = edit.node(*change.node);
  std::vector<Argument> args = node.args();
  std::vector<graph::NamedArgument> kwargs = node.kwargs();
  const auto at = static_cast<std::ptrdiff_t>(change.position);
  if (change.is_keyword) {
    if (change.replacement) {
      kwargs[change.position].value = *change.replacement;
    } else {
      kwargs.erase(kwargs.begin() + at);
    }
  } else if (change.replacement) {
    args[change.position] = *change.replacement;
  } else {
    args.erase(args.begin() + at);
  }
  node.set_arguments(std::move(args), std::move(kwargs));
  return edit.finish(false);
}

}  // namespace

Proposals passes::arguments() {
  return {&one_round,
          [](const Candidate& program, std::size_t) { return all_changes(*program.graph).size(); },
          &propose_arguments};
}

}  // namespace assay::reduce
