#include "reduce/findings.h"

#include <algorithm>
#include <cstdlib>

namespace assay::reduce {

namespace {

// In bytes: up to where the texts differ, less what one is longer.
std::ptrdiff_t common_bytes(const std::string& left, const std::string& right) {
  const auto ends = std::ranges::mismatch(left, right);
  return (ends.in1 - left.begin()) - std::abs(std::ssize(left) - std::ssize(right));
}

}  // namespace

std::string Findings::comment_on(const sandbox::Signature& signature) const {
  std::string comment = "# assay reduce: " + sandbox::describe(signature) + "\n";
  if (!rerun_.empty()) comment += "# assay reduce: to reproduce: " + rerun_ + "\n";
  return comment;
}

void Findings::save_step(const Candidate& best, const sandbox::Signature& signature) {
  const std::string comment = comment_on(signature);
  workspace_.save("repro.py", workspace_.print_for_people(best, comment));
  workspace_.save("checkpoints/" + std::to_string(count_calls(*best.graph)) + ".py",
                  workspace_.print_for_people(best, comment, 1));
  best_text_ = workspace_.print(best);
}

void Findings::save_result(const Candidate& best, const sandbox::Signature& signature,
                           const std::string& comment) {
  workspace_.save("repro.py", workspace_.print_for_people(best, comment_on(signature) + comment));
}

void Findings::save_other(const Candidate& program, const sandbox::Signature& signature) {
  const bool is_known = std::ranges::any_of(others_, [&](const OtherFailure& other) {
    return sandbox::is_same(other.signature, signature);
  });
  if (is_known) return;
  const std::string name = "other/" + std::to_string(others_.size() + 1) + "-" +
                           sandbox::to_string(signature.verdict) +
                           (signature.op.empty() ? "" : "-" + signature.op) + ".py";
  workspace_.save(name, workspace_.print_for_people(program, comment_on(signature), 1));
  others_.push_back({signature, workspace_.directory() / name});
}

void Findings::note_passing(const Candidate& candidate, const std::string& text) {
  // The one at hand may have been the neighbour of an earlier, larger program.
  if (passing_ && common_bytes(best_text_, text) <= common_bytes(best_text_, passing_text_)) return;
  passing_ = candidate;
  passing_text_ = text;
}

std::optional<std::filesystem::path> Findings::save_passing() const {
  if (!passing_) return std::nullopt;
  workspace_.save("passing.py", workspace_.print_for_people(
                                    *passing_, "# assay reduce: this program does not fail\n"));
  return workspace_.directory() / "passing.py";
}

}  // namespace assay::reduce
