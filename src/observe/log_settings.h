// The TORCH_LOGS grammar: from text such as "+dynamo,aot,output_code" to a level per channel.
// Called by configure.cpp; follows the behaviour of stock PyTorch (see docs/observe.md).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "observe/channel.h"
#include "observe/settings_error.h"

namespace assay::observe {

/// The lowest level that is logged, for every component and artifact.
struct LogLevels {
  std::array<Level, channel_count> levels;
  /// Names that stock PyTorch knows and that do nothing here, as they were written.
  std::vector<std::string> ignored;
  /// Artifacts that were switched on and that nothing emits yet.
  std::vector<std::string> not_emitted;

  /// Warnings and errors only: the levels when nothing is set.
  LogLevels();
  Level of(Channel channel) const { return levels[channel.index()]; }
};

/// Reads a list of names. `variable` is where the text came from, for the error message.
/// Throws SettingsError on bad grammar and unknown names, HelpRequested for `help` and `+help`.
LogLevels parse_logs(std::string_view text, std::string_view variable = "TORCH_LOGS");

}  // namespace assay::observe
