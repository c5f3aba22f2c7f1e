#include "reduce/locate.h"

#include <algorithm>
#include <charconv>

#include "reduce/observed_program.h"

namespace assay::reduce {

namespace {

using graph::Node;
using sandbox::Difference;
using sandbox::Signature;
using sandbox::Verdict;

// The name in `gradient['x']`; empty if it is not that.
std::string_view gradient_of(std::string_view where) {
  constexpr std::string_view kBegin = "gradient['";
  if (!where.starts_with(kBegin) || !where.ends_with("']")) return {};
  return where.substr(kBegin.size(), where.size() - kBegin.size() - 2);
}

// The number in `output[3]`.
std::optional<std::size_t> result_number(std::string_view where) {
  constexpr std::string_view kBegin = "output[";
  if (!where.starts_with(kBegin)) return std::nullopt;
  std::size_t number = 0;
  const auto [end, error] =
      std::from_chars(where.data() + kBegin.size(), where.data() + where.size(), number);
  if (error != std::errc() || *end != ']') return std::nullopt;
  return number;
}

class Locator {
 public:
  Locator(const Candidate& program, const Signature& wanted, Judge& judge, VerdictLog& log,
          const Workspace& workspace)
      : program_(program),
        atoms_(atoms(*program.graph)),
        wanted_(wanted),
        judge_(judge),
        log_(log),
        workspace_(workspace) {}

  Ends run() {
    find_noticer();
    if (wanted_.verdict == Verdict::accuracy || !ends_.noticed.empty()) {
      const bool is_gradient = wanted_.where.starts_with("gradient");
      if (is_gradient) ask_alone();
      if (wrong_.empty()) ask_connected(calls_before_noticer());
      if (wrong_.empty() && !is_gradient) ask_alone();
    } else if (wanted_.verdict == Verdict::exception || wanted_.verdict == Verdict::signal) {
      search_noticer();
    }
    choose_wrong();
    return std::move(ends_);
  }

 private:
  // The call that the failure names, if it is one that raises.
  void find_noticer() {
    if (wanted_.verdict == Verdict::accuracy || wanted_.op.empty()) return;
    for (const Atom& atom : atoms_) {
      const auto& names = program_.suspects;
      const bool is_named = std::ranges::find(names, atom.front()->name()) != names.end();
      if (is_named && names.size() == 1) ends_.noticed = atom.front()->name();
    }
  }

  std::size_t calls_before_noticer() const {
    const auto found = std::ranges::find_if(
        atoms_, [&](const Atom& atom) { return atom.front()->name() == ends_.noticed; });
    return static_cast<std::size_t>(found - atoms_.begin());
  }

  // The fewest first calls that raise: the last of them is the one that notices. On the way some
  // are asked that do not raise, and show what is wrong.
  void search_noticer() {
    std::size_t passing = 0;
    std::size_t failing = atoms_.size();
    while (failing - passing > 1) {
      const std::size_t middle = (passing + failing) / 2;
      const bool raises = ask_connected(middle);
      (raises ? failing : passing) = middle;
    }
    ends_.noticed = atoms_[passing].front()->name();
    if (wrong_.empty()) ask_alone();
  }

  // True if they fail as is looked for.
  bool ask_connected(std::size_t count) {
    if (count == 0) return false;
    const auto observed = first_calls(program_, count);
    return observed && ask(*observed, false);
  }

  void ask_alone() {
    if (const auto observed = calls_alone(program_)) ask(*observed, true);
  }

  bool ask(const ObservedProgram& observed, bool backward) {
    const std::string text = workspace_.print(observed.program);
    const std::string key = verdict_key(text + (backward ? "all, backward" : "all"));
    auto judgement = log_.find(key);
    if (!judgement) {
      judgement = judge_.locate(text, backward);
      log_.add(key, *judgement);
    }
    for (const Difference& difference : judgement->differences) note(observed, difference);
    return judge_.is_wanted(judgement->signature);
  }

  void note(const ObservedProgram& observed, const Difference& difference) {
    std::string node;
    if (const auto number = result_number(difference.where)) {
      if (*number < observed.results.size()) node = observed.results[*number];
    } else if (const auto name = gradient_of(difference.where); !name.empty()) {
      const auto reader = observed.readers.find(name);
      if (reader != observed.readers.end()) node = reader->second;
    }
    if (!node.empty()) wrong_.push_back({std::move(node), difference.kind});
  }

  // Of each kind the first call in the order of the program. What is wrong about the first may
  // become what is looked for only later: NaN becomes a wrong number where it is compared.
  void choose_wrong() {
    std::map<std::string_view, std::size_t> order;
    for (std::size_t i = 0; i < atoms_.size(); ++i) {
      for (const Node* node : atoms_[i]) order.emplace(node->name(), i);
    }
    std::ranges::stable_sort(wrong_, {},
                             [&](const Ends::WrongCall& call) { return order.at(call.node); });
    for (Ends::WrongCall& call : wrong_) {
      const bool is_known =
          std::ranges::find(ends_.wrong, call.kind, &Ends::WrongCall::kind) != ends_.wrong.end();
      call.node = atoms_[order.at(call.node)].front()->name();
      if (!is_known) ends_.wrong.push_back(call);
    }
    const auto shows = std::ranges::find(ends_.wrong, wanted_.type, &Ends::WrongCall::kind);
    const bool is_later = shows != ends_.wrong.end() && shows != ends_.wrong.begin();
    if (wanted_.verdict == Verdict::accuracy && is_later) ends_.noticed = shows->node;
  }

  const Candidate& program_;
  const std::vector<Atom> atoms_;
  const Signature& wanted_;
  Judge& judge_;
  VerdictLog& log_;
  const Workspace& workspace_;
  std::vector<Ends::WrongCall> wrong_;
  Ends ends_;
};

}  // namespace

Ends locate(const Candidate& program, const Signature& wanted, Judge& judge, VerdictLog& log,
            const Workspace& workspace) {
  // A command judges files as a whole.
  const bool is_asked_of_command = !judge.base().command.empty();
  if (is_asked_of_command || program.values == nullptr || count_calls(*program.graph) == 0) {
    return {};
  }
  return Locator(program, wanted, judge, log, workspace).run();
}

}  // namespace assay::reduce
