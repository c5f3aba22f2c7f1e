#include "reduce/edit.h"

#include <bit>
#include <set>

#include "graph/rewrite.h"

namespace assay::reduce {

namespace {

graph::Argument map_numbers(const graph::Argument& argument,
                            const std::function<std::int64_t(std::int64_t)>& map) {
  if (const auto* number = argument.get_if<std::int64_t>()) return map(*number);
  const auto mapped = [&] {
    std::vector<graph::Argument> items;
    for (const graph::Argument& item : argument.items()) items.push_back(map_numbers(item, map));
    return items;
  };
  if (argument.get_if<graph::List>() != nullptr) return graph::List{mapped()};
  if (argument.get_if<graph::Tuple>() != nullptr) return graph::Tuple{mapped()};
  if (argument.get_if<graph::Slice>() != nullptr) return graph::Slice{mapped()};
  return argument;
}

}  // namespace

std::size_t one_round(const Candidate&) { return 1; }

std::size_t halvings(const Candidate& program) {
  const std::size_t calls = count_calls(*program.graph);
  return calls < 2 ? 0 : static_cast<std::size_t>(std::bit_width(calls)) - 1;
}

std::size_t one_proposal(const Candidate&, std::size_t) { return 1; }

void map_sizes(graph::Graph& graph, const std::function<std::int64_t(std::int64_t)>& map) {
  for (graph::Node& node : graph.nodes()) {
    if (!node.is_call()) continue;
    graph::map_arguments(
        node, [&](const graph::Argument& argument) { return map_numbers(argument, map); });
  }
}

std::optional<Candidate> keep_atoms(const Candidate& program, const std::vector<Atom>& atoms,
                                    std::size_t begin, std::size_t end) {
  std::set<const graph::Node*> kept;
  for (std::size_t i = begin; i < end; ++i) kept.insert(atoms[i].begin(), atoms[i].end());
  return keep_calls(program, kept);
}

std::optional<Candidate> Edit::finish(bool values_hold) {
  erase_unused(*graph_);
  for (graph::Node* placeholder : graph_->placeholders()) {
    if (placeholder->users().empty()) drop_input(program_, *graph_, *placeholder);
  }
  if (!values_hold) program_.values = nullptr;
  program_.graph = std::move(graph_);
  return std::move(program_);
}

}  // namespace assay::reduce
