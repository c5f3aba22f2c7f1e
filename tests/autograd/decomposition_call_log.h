/// \file Which operators a decomposition calls.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <memory>
#include <vector>

namespace assay::autograd {

/// While it lives, lists the operators that this thread calls, and not by one another. Those that
/// ATen only has as a composition of others are not counted, but what they call.
class CallLog {
 public:
  CallLog()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(&on_start, &on_end).scopes({at::RecordScope::FUNCTION}))) {
    current() = this;
  }
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;
  ~CallLog() {
    at::removeCallback(handle_);
    current() = nullptr;
  }

  std::vector<c10::OperatorName> calls;

 private:
  struct Counted : at::ObserverContext {};

  static CallLog*& current() {
    static thread_local CallLog* log = nullptr;
    return log;
  }

  static std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
    const auto name = function.operator_name();
    CallLog* log = current();
    if (!name || log == nullptr) return nullptr;
    const auto op = c10::Dispatcher::singleton().findSchema(*name);
    if (!op) return nullptr;
    const bool is_composition =
        op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::CPU);
    if (is_composition) return nullptr;
    if (log->depth_++ == 0) log->calls.push_back(*name);
    return std::make_unique<Counted>();
  }

  static void on_end(const at::RecordFunction&, at::ObserverContext* context) {
    if (context != nullptr && current() != nullptr) --current()->depth_;
  }

  int depth_ = 0;
  at::CallbackHandle handle_;
};

}  // namespace assay::autograd
