// A failure often shows far from the call that is wrong. Where the first wrong call is known, it is
// tried alone, or joined to the call that notices it; then with the calls in between; then each end
// with all that it is computed from.
#include <algorithm>

#include "reduce/bypass.h"
#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

using graph::Node;
using Kept = std::set<const Node*>;

struct Plan {
  enum class Kind { keep, join };

  Kind kind = Kind::keep;
  Kept kept = {};
  const Node* first = nullptr;
  const Node* last = nullptr;
  const Node* only = nullptr;
};

Kept common(const Kept& left, const Kept& right) {
  Kept found;
  std::ranges::set_intersection(left, right, std::inserter(found, found.end()));
  return found;
}

class Plans {
 public:
  explicit Plans(const Candidate& program) : program_(program) {
    if (!program.ends) return;
    const Node* noticed = program.graph->find(program.ends->noticed);
    for (const Ends::WrongCall& call : program.ends->wrong) {
      const Node* wrong = program.graph->find(call.node);
      if (wrong == nullptr) continue;
      if (noticed == nullptr || noticed == wrong) {
        keep({wrong});
      } else {
        connect(*wrong, *noticed);
      }
    }
    if (noticed != nullptr) keep({noticed});
    for (const Ends::WrongCall& call : program.ends->wrong) {
      const Node* wrong = program.graph->find(call.node);
      if (wrong != nullptr && noticed == nullptr) keep(ancestors_of(*wrong));
    }
    if (noticed != nullptr) keep(ancestors_of(*noticed));
  }

  std::vector<Plan> take() { return std::move(plans_); }

 private:
  void keep(const Kept& nodes) {
    Kept kept;
    for (const Atom& atom : atoms(*program_.graph)) {
      const bool is_kept =
          std::ranges::any_of(atom, [&](const Node* node) { return nodes.contains(node); });
      if (is_kept) kept.insert(atom.begin(), atom.end());
    }
    plans_.push_back({Plan::Kind::keep, std::move(kept)});
  }

  void connect(const Node& wrong, const Node& noticed) {
    plans_.push_back({Plan::Kind::join, {}, &wrong, &noticed});
    const Kept dependents = dependents_of(*program_.graph, wrong);
    Kept carrying;
    noticed.for_each_input([&](const Node& operand) {
      if (dependents.contains(&operand)) carrying.insert(&operand);
    });
    if (carrying.empty()) return;
    for (const Node* operand : carrying) {
      if (carrying.size() < 2) break;
      plans_.push_back({Plan::Kind::join, {}, &wrong, &noticed, operand});
    }
    keep(common(dependents, ancestors_of(noticed)));
  }

  const Candidate& program_;
  std::vector<Plan> plans_;
};

std::optional<Candidate> propose_divergence(const Candidate& program, std::size_t,
                                            std::size_t index, repro::ContentStore&) {
  const Plan plan = Plans(program).take()[index];
  if (plan.kind == Plan::Kind::join) return join(program, *plan.first, *plan.last, plan.only);
  return keep_calls(program, plan.kept);
}

}  // namespace

Proposals passes::divergence() {
  return {&one_round,
          [](const Candidate& program, std::size_t) { return Plans(program).take().size(); },
          &propose_divergence};
}

}  // namespace assay::reduce
