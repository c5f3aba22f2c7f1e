#include "reduce/bypass.h"

#include <algorithm>
#include <tuple>

#include "graph/rewrite.h"
#include "reduce/bridge.h"
#include "reduce/edit.h"

namespace assay::reduce {

namespace {

using graph::Argument;
using graph::Graph;
using graph::Node;

// The order in which bypassing makes programs smaller.
std::pair<std::size_t, std::size_t> cost_of(const Graph& graph) {
  const auto costly = std::ranges::count_if(
      graph.nodes(), [](const Node& node) { return node.is_call() && !is_cheap(node); });
  return {count_calls(graph), static_cast<std::size_t>(costly)};
}

bool calls_operators(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return node.is_call() && node.target().is_operator();
  });
}

// Puts other values in the place of those of bypassed calls, in a copy of the graph.
class BypassEdit {
 public:
  BypassEdit(const Candidate& program, const Bypasses& calls)
      : program_(program), calls_(calls), edit_(program) {}

  std::optional<Candidate> run() {
    const auto all = atoms(*program_.graph);
    for (const Atom& atom : all) {
      if (calls_.contains(atom.front())) bypassed_.insert(atom.begin(), atom.end());
    }
    for (const Atom& atom : all) {
      const auto found = calls_.find(atom.front());
      if (found == calls_.end()) continue;
      const auto instead = instead_.find(found->second);
      const Node& operand = instead == instead_.end() ? *found->second : *instead->second;
      for (const Node* value : atom) {
        instead_[value] = &operand;
        if (!replace(*value, operand)) return std::nullopt;
      }
    }
    if (!choose_results()) return std::nullopt;
    auto smaller = edit_.finish(false);
    const auto cost = cost_of(*smaller->graph);
    if (cost.first == 0 || cost >= cost_of(*program_.graph)) return std::nullopt;
    return smaller;
  }

 private:
  bool is_read(const Node& value) const {
    return std::ranges::any_of(value.users(),
                               [&](const Node* user) { return !bypassed_.contains(user); });
  }

  bool replace(const Node& value, const Node& operand) {
    if (!is_read(value)) return true;
    const auto recorded = program_.values->find(value.name());
    if (recorded == program_.values->end()) return false;
    if (recorded->second.kind == RecordedValue::Kind::constant) {
      graph::replace_uses(edit_.node(value), recorded->second.constant);
      return true;
    }
    const auto wanted = look_of(program_, value);
    const auto own = look_of(program_, operand);
    if (!wanted || !own) return false;
    Node* adapted = adapted_to(value, operand, *own, *wanted);
    if (adapted == nullptr) return false;
    edit_.node(value).replace_all_uses_with(*adapted);
    return true;
  }

  Node* adapted_to(const Node& value, const Node& operand, const Look& own, const Look& wanted) {
    if (own == wanted) return &edit_.node(operand);
    for (const auto& [source, look, made] : adapted_) {
      if (source == &operand && look == wanted) return made;
    }
    const Graph::InsertBefore before(edit_.graph(), edit_.node(value));
    Node* made =
        adapt(edit_.graph(), edit_.node(operand), own, wanted, calls_operators(*program_.graph));
    if (made == nullptr) return nullptr;
    made->meta.value = value.meta.value;
    adapted_.emplace_back(&operand, wanted, made);
    return made;
  }

  // A bypassed result is its operand now: which may be an input, or a result already.
  bool choose_results() {
    const Node& old = *program_.graph->output();
    bool has_changed = false;
    old.for_each_input([&](const Node& node) { has_changed |= bypassed_.contains(&node); });
    if (!has_changed) return true;
    std::vector<Argument> results;
    std::set<const Node*> known;
    Node& output = *edit_.graph().output();
    output.for_each_input([&](Node& node) {
      if (node.is_call() && known.insert(&node).second) results.emplace_back(&node);
    });
    if (results.empty()) return false;
    output.set_arguments({Argument(graph::Tuple{std::move(results)})});
    return true;
  }

  const Candidate& program_;
  const Bypasses& calls_;
  Edit edit_;
  std::set<const Node*> bypassed_;
  std::map<const Node*, const Node*> instead_;  // of a bypassed value
  std::vector<std::tuple<const Node*, Look, Node*>> adapted_;
};

const Atom* atom_with(const std::vector<Atom>& all, const Node& node) {
  const auto found = std::ranges::find_if(
      all, [&](const Atom& atom) { return std::ranges::find(atom, &node) != atom.end(); });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::set<const Node*> dependents_of(const Graph& graph, const Node& node) {
  std::set<const Node*> found = {&node};
  for (const Node& later : graph.nodes()) {
    later.for_each_input([&](const Node& input) {
      if (found.contains(&input)) found.insert(&later);
    });
  }
  return found;
}

std::set<const Node*> ancestors_of(const Node& node) {
  std::set<const Node*> found = {&node};
  std::vector<const Node*> open = {&node};
  while (!open.empty()) {
    const Node* next = open.back();
    open.pop_back();
    next->for_each_input([&](const Node& input) {
      if (found.insert(&input).second) open.push_back(&input);
    });
  }
  return found;
}

std::vector<const Node*> operands_of(const Candidate& program, const Node& call,
                                     const std::set<const Node*>& carriers) {
  std::vector<const Node*> operands;
  const auto wanted = look_of(program, call);
  call.for_each_input([&](const Node& operand) {
    const bool is_new = std::ranges::find(operands, &operand) == operands.end();
    if (is_new && look_of(program, operand)) operands.push_back(&operand);
  });
  const auto merit = [&](const Node* operand) {
    const bool fits = wanted && look_of(program, *operand) == wanted;
    return std::tuple(carriers.contains(operand), operand->is_call(), fits,
                      ancestors_of(*operand).size());
  };
  std::ranges::stable_sort(operands, std::greater(), merit);
  return operands;
}

std::optional<Candidate> bypass(const Candidate& program, const Bypasses& calls) {
  if (program.values == nullptr) return std::nullopt;
  return BypassEdit(program, calls).run();
}

std::optional<Candidate> join(const Candidate& program, const Node& first, const Node& last,
                              const Node* only) {
  const auto all = atoms(*program.graph);
  const Atom* begin = atom_with(all, first);
  const Atom* end = atom_with(all, last);
  if (begin == nullptr || end == nullptr || begin == end) return std::nullopt;
  const Node& call = *end->front();
  std::shared_ptr<Graph> graph = program.graph->clone();
  const auto own = [&](const Node& node) { return graph->find(node.name()); };
  std::set<const Node*> kept;
  for (const Atom* atom : {begin, end}) {
    for (const Node* node : *atom) kept.insert(own(*node));
  }
  // What the last call reads, and the value of the first one to read instead.
  std::map<const Node*, Node*> instead;
  for (const Node* source : *begin) {
    if (!look_of(program, *source)) continue;
    const auto dependents = dependents_of(*program.graph, *source);
    call.for_each_input([&](const Node& operand) {
      if (!dependents.contains(&operand) || (only != nullptr && &operand != only)) return;
      if (!look_of(program, operand)) return;
      instead.try_emplace(own(operand), own(*source));
    });
  }
  if (instead.empty()) return std::nullopt;
  const Graph::InsertBefore before(*graph, *own(call));
  for (auto& [operand, source] : instead) {
    const Look look = *look_of(program, *operand);
    Node* adapted =
        adapt(*graph, *source, *look_of(program, *source), look, calls_operators(*graph));
    if (adapted == nullptr) return std::nullopt;
    for (Node* made = adapted; made != source; made = made->args()[0].node()) {
      kept.insert(made);
    }
    if (adapted != source) adapted->meta.value = operand->meta.value;
    source = adapted;
  }
  const auto replace = [&](Node& node) -> Argument {
    const auto found = instead.find(&node);
    return found == instead.end() ? &node : found->second;
  };
  graph::map_arguments(*own(call),
                       [&](const Argument& argument) { return argument.map_nodes(replace); });
  Candidate joined = program;
  joined.graph = graph;
  auto smaller = keep_calls(joined, kept);
  if (!smaller || cost_of(*smaller->graph) >= cost_of(*program.graph)) return std::nullopt;
  smaller->values = nullptr;
  return smaller;
}

}  // namespace assay::reduce
