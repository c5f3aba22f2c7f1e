/// \file A pass of the reducer: an order in which to try making a program smaller.
///
/// A pass only proposes. Its proposals are numbered, in rounds: the driver (reduce/search.h) tries
/// one after the other on the best program so far, and stays at the same number when it takes one,
/// since what comes next has moved up. The table is reduce/passes/passes.def; a file beside it
/// holds what a pass proposes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reduce/candidate.h"
#include "repro/content_store.h"

namespace assay::reduce {

struct Proposals {
  std::size_t (*rounds)(const Candidate& program);
  std::size_t (*count)(const Candidate& program, std::size_t round);
  /// The program of that number; nothing if there is nothing to try there. New contents of inputs
  /// go to the store.
  std::optional<Candidate> (*propose)(const Candidate& program, std::size_t round,
                                      std::size_t index, repro::ContentStore& store);
};

/// What the driver finds out about the best program before a pass proposes.
enum class Needs {
  nothing,
  values,  ///< It turns values into inputs, so they must be known.
  ends,    ///< And where the failure begins: Candidate::ends.
};

/// What a pass proposes, with the rest of its row in the table.
struct Pass : Proposals {
  std::string_view name;
  Needs needs = Needs::nothing;
  std::string_view description;
};

/// Every pass, in the order in which they run; also what `assay reduce --list-passes` lists.
std::span<const Pass> all_passes();

/// Those with these names, in the order of the table; without names all of them.
std::vector<Pass> choose_passes(const std::vector<std::string>& names);

}  // namespace assay::reduce
