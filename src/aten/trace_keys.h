/// \file The two dispatch keys by which a thread's operators are seen: one below autograd and
/// functionalization, for the recorder, and one above, where a call is still what the user wrote.
///
/// Both are registered once per process and do nothing until a thread includes them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <functional>
#include <vector>

namespace assay::aten {

/// Nothing in PyTorch 2.13 uses these keys; both are switched on per thread.
inline constexpr c10::DispatchKey kBelowAutograd = c10::DispatchKey::Fake;
inline constexpr c10::DispatchKey kAboveAutograd = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// True while one of the keys is included: somebody sees this thread's operators.
inline bool is_traced_by_thread() {
  return c10::impl::tls_is_dispatch_key_included(kBelowAutograd) ||
         c10::impl::tls_is_dispatch_key_included(kAboveAutograd);
}

/// Registers both keys on first use. Throws `UserError` if another library in the process has
/// registered one of them.
void register_trace_keys();

/// While it lives, operators of this thread go to the active recorder (aten/recorder.h).
class TraceBelowAutogradScope {
 public:
  TraceBelowAutogradScope();

 private:
  c10::impl::IncludeDispatchKeyGuard below_;
  c10::impl::IncludeDispatchKeyGuard above_;
};

/// While it lives, operators of this thread go to kernels: neither recorded nor differentiated.
class NotTracedScope {
 public:
  NotTracedScope();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

/// Sees each operator call before autograd does, outermost calls only: what they call is not seen.
using CallListener = std::function<void(const c10::OperatorHandle&, std::vector<c10::IValue>&,
                                        const std::function<void()>& run)>;

/// While it lives, `listener` makes every operator call of this thread, by calling `run`.
class TraceAboveAutogradScope {
 public:
  explicit TraceAboveAutogradScope(const CallListener& listener);
  ~TraceAboveAutogradScope();
  TraceAboveAutogradScope(const TraceAboveAutogradScope&) = delete;
  TraceAboveAutogradScope& operator=(const TraceAboveAutogradScope&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard above_;
  const CallListener* saved_;
};

}  // namespace assay::aten
