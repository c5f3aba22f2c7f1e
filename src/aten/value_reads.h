/// \file Refuses operators whose results a graph cannot hold: values read out of a tensor, and
/// tensors whose sizes depend on values.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "assay/error.h"

namespace assay::aten {

/// Whether this call turns values into numbers, or chooses the sizes of its results by them.
/// `stack` ends with the call's arguments.
bool reads_values(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack);

/// Throws `TraceError` if `op` reads values. `where` says where in the user's program the call
/// stands; may be empty. `stack` ends with the call's arguments.
void refuse_value_read(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack,
                       const std::function<std::string()>& where);

/// While it lives, an operator of this thread that reads values throws `TraceError`, also where it
/// is hidden in another one. For threads without an active recorder.
class RefuseValueReadsScope {
 public:
  explicit RefuseValueReadsScope(std::function<std::string()> where);
  ~RefuseValueReadsScope();
  RefuseValueReadsScope(const RefuseValueReadsScope&) = delete;
  RefuseValueReadsScope& operator=(const RefuseValueReadsScope&) = delete;

  /// Throws if one is active on this thread and `op` reads values. `stack` ends with its arguments.
  static void check(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack);
  /// What was thrown by this one, if anything.
  const std::optional<TraceError>& error() const { return error_; }

 private:
  c10::impl::IncludeDispatchKeyGuard below_;
  std::function<std::string()> where_;
  std::optional<TraceError> error_;
  RefuseValueReadsScope* saved_;
};

}  // namespace assay::aten
