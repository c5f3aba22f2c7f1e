/// \file What a process wants of its compiled functions at the moment: `assay.set_stance`. Asked by
/// the compiled function for every call, and by the driver before it records.
#pragma once

#include <optional>
#include <string_view>

namespace assay::capture {

enum class Stance {
  normal,              ///< Compile what is called.
  force_eager,         ///< Run everything eagerly, what is compiled too.
  eager_on_recompile,  ///< Replay what fits; compile nothing new.
  fail_on_recompile,   ///< Raise where something would be compiled.
};

/// PyTorch's name of a stance. `eager_then_compile` and its relative are `default`: the first call
/// is eager's in any case.
std::optional<Stance> stance_of(std::string_view name);

/// Both need the GIL.
Stance stance();
void set_stance(Stance stance);

}  // namespace assay::capture
