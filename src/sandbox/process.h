/// \file Runs a function in a forked process, within limits, and tells how it ended.
///
/// What a trial server does for every trial, and what runs the commands of `assay reduce --check`.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "sandbox/trial.h"

namespace assay::sandbox {

struct Ending {
  Outcome outcome;                  ///< Without a report.
  std::vector<std::string> report;  ///< The lines the process wrote to its report pipe.
  bool was_cancelled = false;
};

/// What the process does; it gets the pipe for its report. Returning ends the process with 0, an
/// exception with SIGABRT.
using ProcessBody = std::function<void(int report_pipe)>;

/// True once the trial is to be given up; called when `control` becomes readable.
using IsCancelled = std::function<bool()>;

/// Forks. The process leads a group of its own, which is killed as a whole at a limit and after the
/// process has ended; it dies with its parent. At the limit it gets SIGTERM first and a moment to
/// say where it was; while it is exhausting its memory it may take longer than the limit.
/// Throws `std::system_error` if there can be no process.
Ending run_process(const Limits& limits, const ProcessBody& body, int control = -1,
                   const IsCancelled& is_cancelled = {});

/// For a server, which runs processes: it ends when `parent` does, or by SIGTERM, and takes the
/// whole group of the process it runs with it. That alone dies with the server, what it has started
/// does not.
void end_with_parent(pid_t parent);

}  // namespace assay::sandbox
