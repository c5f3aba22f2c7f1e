/// \file The settings of the process and the thread that change what operators do. A compiled graph
/// is used again only while they are as they were.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

namespace assay::guards {

struct GlobalState {
  bool grad_mode = true;
  bool inference_mode = false;
  bool deterministic = false;
  bool autocast = false;
  c10::ScalarType autocast_dtype = c10::ScalarType::BFloat16;
  /// Also what a region of the program takes over that does not say.
  bool autocast_cache = true;
  /// What a program can read of other devices: where autocast is enabled (the bits of their
  /// dispatch keys), and CUDA's dtype.
  std::uint64_t autocast_devices = 0;
  c10::ScalarType autocast_cuda_dtype = c10::ScalarType::Half;
  bool cudnn = true;
  c10::ScalarType default_dtype = c10::ScalarType::Float;

  static GlobalState current();
  bool operator==(const GlobalState&) const = default;

  /// One sentence about what is different in `now`; empty if nothing is.
  std::string difference(const GlobalState& now) const;
};

}  // namespace assay::guards
