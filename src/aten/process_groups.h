/// \file Process groups of which this process is the only member that exists. Stock PyTorch's files
/// with collectives set up such groups (`setup_fake_process_groups`), so that one process can run
/// them. Called by repro/process_groups.cpp; aten/operators.cpp asks whether there are any.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace assay::aten {

struct ProcessGroupSize {
  std::int64_t size = 1;
  std::int64_t rank = 0;
  friend bool operator==(const ProcessGroupSize&, const ProcessGroupSize&) = default;
};

/// By the names that collectives call them.
using ProcessGroups = std::map<std::string, ProcessGroupSize, std::less<>>;

/// Registers the groups with c10d, instead of those of an earlier call. What a collective gives is
/// as if every other process had the same data, and as if a reduction had nothing to add: gathering
/// repeats the input, scattering gives this rank's part. A group of these names that others have
/// registered stays.
void simulate_process_groups(const ProcessGroups& groups);

/// Whether groups are simulated now.
bool simulates_process_groups();

}  // namespace assay::aten
