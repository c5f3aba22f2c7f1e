// Work that is nobody's: what a program does to warm itself up is not what its user asks to see.
#pragma once

namespace assay::observe {

/// While one lives, no consumer gets anything that begins, on any thread.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

}  // namespace assay::observe
