/// \file Programs that show what a program computes on its way: all of their values are results.
/// Internal to reduce/locate.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reduce/candidate.h"

namespace assay::reduce {

struct ObservedProgram {
  Candidate program;
  /// For each result, the node of the original whose value it is.
  std::vector<std::string> results;
  /// For inputs that only one call reads, that call.
  std::map<std::string, std::string, std::less<>> readers = {};
};

/// The first `count` atoms of the program, as they are connected.
std::optional<ObservedProgram> first_calls(const Candidate& program, std::size_t count);

/// All calls side by side: each reads inputs of its own, with the values that eager computed.
std::optional<ObservedProgram> calls_alone(const Candidate& program);

}  // namespace assay::reduce
