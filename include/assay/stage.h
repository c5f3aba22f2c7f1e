/// \file The steps of a program on its way through a compiler, and so where a failure is found.
///
/// Every room and both trial servers use these names; python/assay/stock/stage.py has the same.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace assay {

/// In the order in which they happen.
enum class Stage {
  load,      ///< Reading the file, making its inputs.
  capture,   ///< Turning a function into a graph.
  eager,     ///< Running the program itself: what fails here is not the compiler's fault.
  compile,   ///< The backend's compiler.
  run,       ///< What it compiled.
  backward,  ///< The backward pass of what it compiled.
  compare,   ///< Comparing its results with eager's.
};

inline constexpr std::array<std::string_view, 7> kStageNames = {
    "load", "capture", "eager", "compile", "run", "backward", "compare"};

constexpr std::string_view to_string(Stage stage) {
  return kStageNames[static_cast<std::size_t>(stage)];
}

/// Nothing if there is no stage of that name.
constexpr std::optional<Stage> stage_named(std::string_view name) {
  for (std::size_t i = 0; i < kStageNames.size(); ++i) {
    if (kStageNames[i] == name) return static_cast<Stage>(i);
  }
  return std::nullopt;
}

}  // namespace assay
