/// \file Takes calls out of the middle of a program: their readers read one of their operands
/// instead, as it is or through a bridge (reduce/bridge.h).
///
/// Removing a call (`keep_calls`) gives its readers the value that eager computed. That is wrong
/// where a wrong value, dtype or layout is on its way through the call to where it shows: a call
/// that is bypassed lets it through. Called by the passes `bypass` and `divergence`.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "reduce/candidate.h"

namespace assay::reduce {

/// The tensors that the call reads, the one first that most likely carries what is wrong: a result
/// of calls that depend on `carriers`, if there are any; then one that fits; then one that many
/// calls went into.
std::vector<const graph::Node*> operands_of(const Candidate& program, const graph::Node& call,
                                            const std::set<const graph::Node*>& carriers);

/// The nodes whose values depend on the node, and the node.
std::set<const graph::Node*> dependents_of(const graph::Graph& graph, const graph::Node& node);
/// The nodes on which the node's value depends, and the node.
std::set<const graph::Node*> ancestors_of(const graph::Node& node);

/// For each call that is bypassed, the operand that its readers read instead.
using Bypasses = std::map<const graph::Node*, const graph::Node*>;

/// The program without these calls. Nothing if a value is not known or does not fit, or if the
/// result would not be smaller: fewer calls, or as many of which more are cheap.
std::optional<Candidate> bypass(const Candidate& program, const Bypasses& calls);

/// The program of two calls: `last` reads `first` (or items of it) where it reads something that
/// depends on it; what else they read has the value that it had. With `only`, just this operand of
/// `last` is replaced. Nothing if `last` does not depend on `first`, or if it would not be smaller.
std::optional<Candidate> join(const Candidate& program, const graph::Node& first,
                              const graph::Node& last, const graph::Node* only = nullptr);

}  // namespace assay::reduce
