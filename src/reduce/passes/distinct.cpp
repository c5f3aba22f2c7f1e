// One call of each operator: a fault of one operator shows in the first or the last of its calls as
// well as in all of them, and a model of hundreds of calls has a dozen operators.
#include <map>

#include "reduce/passes/passes.h"

namespace assay::reduce {

namespace {

std::optional<Candidate> propose_distinct(const Candidate& program, std::size_t round, std::size_t,
                                          repro::ContentStore&) {
  const auto all = atoms(*program.graph);
  std::map<std::string, const Atom*> chosen;
  for (const Atom& atom : all) {
    const std::string& name = atom.front()->target().name();
    if (round == 0) {
      chosen.try_emplace(name, &atom);
    } else {
      chosen[name] = &atom;
    }
  }
  // Where most operators are called once there is little to gain.
  if (2 * chosen.size() > all.size()) return std::nullopt;
  std::set<const graph::Node*> kept;
  for (const auto& [name, atom] : chosen) kept.insert(atom->begin(), atom->end());
  return keep_calls(program, kept);
}

}  // namespace

Proposals passes::distinct() {
  return {[](const Candidate&) { return std::size_t{2}; },
          [](const Candidate&, std::size_t) { return std::size_t{1}; }, &propose_distinct};
}

}  // namespace assay::reduce
