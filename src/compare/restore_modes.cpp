#include "compare/restore_modes.h"

#include <ATen/autocast_mode.h>

namespace assay::compare {

namespace {

int nesting() {
  at::autocast::increment_nesting();
  return at::autocast::decrement_nesting();
}

}  // namespace

RestoreModesScope::RestoreModesScope()
    : enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
      dtype_(at::autocast::get_autocast_dtype(at::kCPU)),
      cache_(at::autocast::is_autocast_cache_enabled()),
      nesting_(nesting()) {}

RestoreModesScope::~RestoreModesScope() {
  at::autocast::set_autocast_enabled(at::kCPU, enabled_);
  at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  at::autocast::set_autocast_cache_enabled(cache_);
  while (nesting() > nesting_) at::autocast::decrement_nesting();
  if (nesting_ == 0) at::autocast::clear_cache();
}

}  // namespace assay::compare
