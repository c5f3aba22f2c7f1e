/// \file Random but valid graphs, for round-trip and fuzz tests and for benchmarks.
#pragma once

#include <cstdint>

#include "repro/content_store.h"
#include "repro/repro_file.h"

namespace assay::testing {

struct GeneratorOptions {
  std::uint64_t seed = 0;
  std::size_t calls = 20;   ///< How many calls to aim for.
  bool torch_level = true;  ///< Mix in Python-level functions, methods, operators and indexing.
  bool in_place = true;     ///< Mix in calls that change tensors.
  bool subgraphs = true;
};

/// A graph in which every call runs and every value has its metadata, with inputs. With a store the
/// inputs' contents are saved there.
repro::ReproFile generate(const GeneratorOptions& options, repro::ContentStore* store = nullptr);

/// A long chain of cheap calls, for benchmarks.
std::unique_ptr<graph::Graph> long_graph(std::size_t calls);

}  // namespace assay::testing
