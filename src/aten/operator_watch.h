/// \file Counts the operators that a thread runs and lets them run; notices those that read values.
/// Capture watches a program with it while it executes: an operator that it did not expect, or one
/// whose result depends on values, must not go unseen.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <string>
#include <vector>

namespace assay::aten {

class OperatorWatch {
 public:
  OperatorWatch() = default;
  ~OperatorWatch() { stop(); }
  OperatorWatch(const OperatorWatch&) = delete;
  OperatorWatch& operator=(const OperatorWatch&) = delete;

  /// From now on this thread's operators are seen. One watch at a time; not while a recorder
  /// (aten/recorder.h) is active.
  void start();
  void stop();

  /// Operators seen so far.
  std::size_t count() const { return count_; }
  /// The first operator since `forget` that reads values or chooses sizes by them, as Python calls
  /// it; empty if there was none.
  const std::string& value_read() const { return value_read_; }
  void forget() { value_read_.clear(); }

  /// For the dispatch key: tells this thread's watch, if there is one, about a call.
  static bool notice(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack);

 private:
  bool is_active_ = false;
  std::size_t count_ = 0;
  std::string value_read_;
};

}  // namespace assay::aten
