/// \file Who wants to know of every recording: `python -m assay` keeps PyTorch's counters by it,
/// and raises PyTorch's errors where programs ask for them. Told by finish_segment.cpp and the
/// driver.
#pragma once

#include <Python.h>

#include "capture/segment_cache.h"

namespace assay::capture {

/// A function of (function, file, line, number of calls in the graph or None, reason of the break
/// or None, failed guard or ""), or None. Called with nothing captured.
void set_listener(PyObject* function);
/// False with an exception set if the listener has raised.
bool tell_listener(const CaptureRecord& record);

/// A function of (function, failed guard, is the limit hit, is `fullgraph` set) that is asked
/// before something is compiled once more, or None. Its exception goes to the program.
void set_recompile_check(PyObject* function);
/// False with an exception set: the frame is to raise it.
bool may_recompile(const std::string& function, const std::string& reason, bool hits_limit,
                   bool fullgraph);

}  // namespace assay::capture
