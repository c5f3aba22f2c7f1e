#include "capture/listener.h"

#include <algorithm>
#include <string>

#include "capture/hook.h"

namespace assay::capture {

namespace {

// Guarded by the GIL.
Ref& listener() {
  static auto* const function = new Ref;
  return *function;
}

Ref& recompile_check() {
  static auto* const function = new Ref;
  return *function;
}

void set_or_clear(Ref& kept, PyObject* function) {
  kept = function == Py_None ? Ref() : Ref::borrow(function);
}

}  // namespace

void set_listener(PyObject* function) { set_or_clear(listener(), function); }
void set_recompile_check(PyObject* function) { set_or_clear(recompile_check(), function); }

bool tell_listener(const CaptureRecord& record) {
  if (!listener()) return true;
  const NativeFramesScope native;
  Ref calls = Ref::borrow(Py_None);
  if (record.graph != nullptr) {
    calls = Ref::steal(PyLong_FromSsize_t(std::ranges::count_if(
        record.graph->nodes(), [](const graph::Node& node) { return node.is_call(); })));
  }
  const BreakReason& reason = record.reason;
  const char* why = reason.is_break && !reason.reason.empty() ? reason.reason.c_str() : nullptr;
  const Ref function = listener();
  const Ref done = Ref::steal(
      PyObject_CallFunction(function.get(), "ssiOzs", record.function.c_str(), record.file.c_str(),
                            record.line, calls.get(), why, record.recompile.c_str()));
  return static_cast<bool>(done);
}

bool may_recompile(const std::string& function, const std::string& reason, bool hits_limit,
                   bool fullgraph) {
  if (!recompile_check()) return true;
  const NativeFramesScope native;
  const Ref check = recompile_check();
  const Ref done =
      Ref::steal(PyObject_CallFunction(check.get(), "ssii", function.c_str(), reason.c_str(),
                                       static_cast<int>(hits_limit), static_cast<int>(fullgraph)));
  return static_cast<bool>(done);
}

}  // namespace assay::capture
