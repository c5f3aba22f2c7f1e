/// \file Which point of one kernel's loops wrote the element that another kernel reads: the
/// question behind every fusion.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/ir.h"

namespace assay::kernels {

/// The loops of a writer as functions of the loops of a reader.
struct LoopMap {
  std::vector<Index> variables;  ///< One per loop of the writer.
  std::int64_t distinct = 0;     ///< How many points of the writer are read, at most.
  bool covers = false;           ///< All of them are.
};

/// A loop of the reader that must be two loops for there to be a map.
struct LoopSplit {
  std::size_t variable = 0;
  std::int64_t size = 0;  ///< Of the second one.
};

struct InverseResult {
  std::optional<LoopMap> map;
  std::optional<LoopSplit> split;  ///< If there is no map; may be empty too.
};

/// `written` is where the writer stores, over loops of sizes `written_loops`; `read` is where the
/// reader loads, over `read_loops`, wherever `conditions` hold.
InverseResult invert(const Index& written, const Sizes& written_loops, const Index& read,
                     const Sizes& read_loops, std::span<const Condition> conditions);

}  // namespace assay::kernels
