/// \file Log files of the debug directory: the events of some components, as TORCH_LOGS would show
/// them at DEBUG, appended to a file. The file appears with its first event, so none is empty.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "observe/subscribe.h"

namespace assay::repro {

/// True for an event of `component` or of a component or artifact below it; an artifact that has to
/// be named to be logged is left out.
bool belongs_to(const observe::Event& event, observe::Component component);

class DebugLog {
 public:
  using Filter = std::function<bool(const observe::Event&)>;

  /// Writes events that `filter` lets through, as long as it lives.
  DebugLog(std::filesystem::path file, Filter filter);
  ~DebugLog();
  DebugLog(const DebugLog&) = delete;
  DebugLog& operator=(const DebugLog&) = delete;

 private:
  struct Output;
  std::shared_ptr<Output> output_;
  observe::Subscription subscription_;
};

/// The number of this thread in events.
int this_thread();

}  // namespace assay::repro
