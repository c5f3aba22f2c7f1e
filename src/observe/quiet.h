// Work that is nobody's: what a program does to warm itself up is not what its user asks to see.
#pragma once

namespace assay::observe {

/// While one lives, no consumer gets anything that begins, on any thread.
class QuietScope {
 public:
  QuietScope();
  ~QuietScope();
  QuietScope(const QuietScope&) = delete;
  QuietScope& operator=(const QuietScope&) = delete;
};

}  // namespace assay::observe
