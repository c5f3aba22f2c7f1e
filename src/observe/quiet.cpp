#include "observe/quiet.h"

#include "observe/hub.h"

namespace assay::observe {
namespace {

void count_quiet(int change) {
  Hub& consumers = hub();
  const std::lock_guard lock(consumers.mutex);
  consumers.quiet += change;
  set_gates(consumers);
}

}  // namespace

QuietScope::QuietScope() { count_quiet(1); }

QuietScope::~QuietScope() { count_quiet(-1); }

}  // namespace assay::observe
