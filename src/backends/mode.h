/// \file What `aot_eager_decomp_partition_with_mode` does around operators. Stock PyTorch wants a
/// mode from the caller; here one that logs every operator is used where none is set.
#pragma once

#include "aten/runner.h"

namespace assay::backends {

/// While it lives, programs that this thread compiles with that backend call `mode` after every
/// operator, forward and backward, for as long as they live.
class ModeScope {
 public:
  explicit ModeScope(aten::NodeObserver mode);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  aten::NodeObserver saved_;
};

}  // namespace assay::backends
