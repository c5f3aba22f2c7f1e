// Returns less: only one of the results, or all but one.
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::vector<graph::Argument> results(const graph::Graph& graph) {
  std::vector<graph::Argument> found;
  graph.output()->for_each_input([&](graph::Node& node) { found.emplace_back(&node); });
  return found;
}

std::optional<Candidate> propose_outputs(const Candidate& program, std::size_t round,
                                         std::size_t index, repro::ContentStore&) {
  Edit edit(program);
  const std::vector<graph::Argument> all = results(edit.graph());
  std::vector<graph::Argument> kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((i == index) == (round == 0)) kept.push_back(all[i]);
  }
  edit.graph().output()->set_arguments({graph::Argument(graph::Tuple{std::move(kept)})});
  auto smaller = edit.finish(true);
  if (count_calls(*smaller->graph) == 0) return std::nullopt;
  return smaller;
}

}  // namespace

Proposals passes::outputs() {
  return {[](const Candidate&) { return std::size_t{2}; },
          [](const Candidate& program, std::size_t) {
            const std::size_t count = results(*program.graph).size();
            return count < 2 ? 0 : count;
          },
          &propose_outputs};
}

}  // namespace assay::reduce
