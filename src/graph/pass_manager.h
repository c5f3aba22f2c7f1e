/// \file Runs passes over a graph: each gets its timing, its dump if it changed something, a
/// verification, an off switch and a counter by which a bisection can stop at the n-th rewrite.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/verify.h"

namespace assay::graph {

/// What a pass may know about calls; the aten room supplies it from the operators' schemas. The
/// default knows nothing, so that passes leave calls alone.
struct CallFacts {
  /// The call only computes its result: it changes no tensor, draws no random number, cannot be
  /// noticed otherwise.
  std::function<bool(const Node&)> is_pure = [](const Node&) { return false; };
};

/// Handed to a pass while it runs.
class PassContext {
 public:
  PassContext(const CallFacts& facts, std::int64_t& applications, std::int64_t limit)
      : facts_(facts), applications_(applications), limit_(limit) {}

  const CallFacts& facts() const { return facts_; }
  /// To be asked before each rewrite, and obeyed: false once the limit is reached.
  bool may_apply() {
    if (applications_ >= limit_) return false;
    ++applications_;
    ++own_applications_;
    return true;
  }
  std::int64_t applications() const { return own_applications_; }

 private:
  const CallFacts& facts_;
  std::int64_t& applications_;
  std::int64_t limit_;
  std::int64_t own_applications_ = 0;
};

/// A pass: a function on a graph, with a name by which it can be switched off.
struct Pass {
  std::string_view name;
  std::string_view description;
  void (*run)(Graph& graph, PassContext& context);
};

/// Every pass there is; also what `assay passes` lists.
std::span<const Pass> all_passes();

struct PassOptions {
  CallFacts facts;
  VerifyOptions verify;
  std::set<std::string, std::less<>> disabled;
  /// No rewrite is made after this many.
  std::int64_t application_limit = std::numeric_limits<std::int64_t>::max();
};

/// Reads the settings disable_passes and pass_limit into `options`. Throws `UserError` for an
/// unknown pass or a bad number.
void read_settings(PassOptions& options);

struct PassRecord {
  std::string name;
  std::int64_t applications = 0;
  bool was_disabled = false;
};

/// Runs `passes` in order. Throws `InternalError` if a pass leaves a graph the verifier refuses.
std::vector<PassRecord> run_passes(Graph& graph, std::span<const Pass> passes,
                                   const PassOptions& options = {});

}  // namespace assay::graph
