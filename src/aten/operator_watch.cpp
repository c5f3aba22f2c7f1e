#include "aten/operator_watch.h"

#include "aten/operators.h"
#include "aten/trace_keys.h"
#include "aten/value_reads.h"

namespace assay::aten {

namespace {

thread_local OperatorWatch* active_watch = nullptr;

}  // namespace

void OperatorWatch::start() {
  register_trace_keys();
  active_watch = this;
  is_active_ = true;
  c10::impl::tls_set_dispatch_key_included(kBelowAutograd, true);
}

void OperatorWatch::stop() {
  if (!is_active_) return;
  c10::impl::tls_set_dispatch_key_included(kBelowAutograd, false);
  active_watch = nullptr;
  is_active_ = false;
}

bool OperatorWatch::notice(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack) {
  if (active_watch == nullptr) return false;
  ++active_watch->count_;
  if (active_watch->value_read_.empty() && reads_values(op, stack)) {
    active_watch->value_read_ = python_name(op);
  }
  return true;
}

}  // namespace assay::aten
