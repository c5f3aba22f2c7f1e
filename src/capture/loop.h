/// \file Our interpreter loop for CPython 3.11: executes the instructions of a real frame, for
/// real, calling `Operations` for everything that touches objects. Called by the frame hook
/// (hook.h).
#pragma once

#include "capture/activation.h"

namespace assay::capture {

/// Whether the loop can take this frame: not a coroutine or an async generator, not traced or
/// profiled.
bool can_run(PyThreadState* thread, const _PyInterpreterFrame* frame);

/// Executes a frame from where it stands (`frame->prev_instr + 1`, stack included) to its end or
/// its next yield, as the evaluation function of PEP 523 must: the result is a new reference, or
/// null with an exception set. `operations` and `boundary` (may be null) can be replaced in the
/// activation at any boundary or inside any operation. `throwing`: an exception is set and is to be
/// raised where the frame stands (generator.throw()).
PyObject* run(PyThreadState* thread, _PyInterpreterFrame* frame, bool throwing,
              Operations& operations, Boundary* boundary);

/// The activation of the innermost frame that the loop executes in this thread, or null.
Activation* current_activation();

}  // namespace assay::capture
