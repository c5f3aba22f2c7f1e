/// \file Makes the inputs a repro file describes: from its storages, or as stock PyTorch makes
/// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "aten/value.h"
#include "repro/repro_file.h"

namespace assay::repro {

struct InputOptions {
  std::uint64_t seed = 0;  ///< For made-up inputs; set before the first one is made.
  /// Where the storages are, instead of where the file says.
  std::optional<std::filesystem::path> save_directory;
};

struct Inputs {
  std::vector<aten::Value> values;
  std::size_t loaded_storages = 0;
  /// Storages whose contents were not found. Their values are not the original ones: floats are
  /// random, integers zero.
  std::size_t made_up_storages = 0;
  /// What a user should know, one sentence each.
  std::vector<std::string> notes;
};

/// Throws `UserError` if a storage cannot be read or a tensor does not fit its storage. Sets up the
/// file's process groups, too: planning the graph asks for them.
Inputs load_inputs(const ReproFile& file, const InputOptions& options = {});

/// The directory that holds the file's `storages/`: where it says, else beside the file (it may
/// have been moved together with its checkpoints); nothing if the file names none.
std::optional<std::filesystem::path> storage_directory(const ReproFile& file);

/// Seeds PyTorch's default generator, as torch.manual_seed does.
void seed_generator(std::uint64_t seed);

}  // namespace assay::repro
