#include "reduce/others.h"

namespace assay::reduce {

namespace {

using sandbox::Outcome;
using sandbox::Signature;
using sandbox::Verdict;

// How many further faults are looked for.
constexpr int kOtherFaults = 4;

}  // namespace

void look_for_others(const Candidate& original, const Candidate& best, bool keep_passing,
                     Judge& judge, const Workspace& workspace, Findings& findings) {
  std::set<std::string, std::less<>> to_blame;
  for (const graph::Node& node : best.graph->nodes()) {
    if (node.is_call()) to_blame.insert(node.target().name());
  }
  for (int i = 0; i < kOtherFaults; ++i) {
    std::set<const graph::Node*> kept;
    for (const Atom& atom : atoms(*original.graph)) {
      if (!to_blame.contains(atom.front()->target().name())) {
        kept.insert(atom.begin(), atom.end());
      }
    }
    const auto rest = keep_calls(original, kept);
    if (!rest) return;
    const std::string text = workspace.print(*rest);
    const Outcome outcome = judge.run(text);
    const Signature found = sandbox::classify(outcome);
    const bool is_passing = found.verdict == Verdict::passed;
    if (is_passing && keep_passing) findings.note_passing(*rest, text);
    if (found.verdict == Verdict::internal) findings.save_other(*rest, found);
    if (!found.is_failure()) return;
    if (!judge.is_wanted(found)) findings.save_other(*rest, found);
    const std::size_t before = to_blame.size();
    for (const std::string& name : outcome.report.suspects) {
      if (const graph::Node* node = original.graph->find(name)) {
        to_blame.insert(node->target().name());
      }
    }
    if (to_blame.size() == before) return;
  }
}

}  // namespace assay::reduce
