/// \file Raising inside a frame: the traceback, the handler, unwinding. Called by the loop.
#pragma once

#include "capture/activation.h"

namespace assay::capture {

/// One entry of a code object's exception table.
struct Handler {
  int target = 0;            ///< Index of the handler's first instruction.
  int depth = 0;             ///< Of the stack when it starts.
  bool wants_lasti = false;  ///< Whether it expects the index of the raising instruction.
};

/// Finds the handler of an exception raised at `index`.
bool find_handler(const PyCodeObject* code, int index, Handler& handler);

/// Adds the frame, at the line where it stands, to the traceback of the exception that is set.
void add_traceback(Activation& a);

/// Pops all values above `depth`, the top first.
void unwind_stack(Activation& a, int depth);

/// Unwinds the stack to the handler's depth, pushes the exception and goes on at the handler. False
/// if that raised another exception, which must be handled instead.
bool start_handler(Activation& a, const Handler& handler);

/// RERAISE: sets the exception on the stack again. `depth` of the saved instruction index on the
/// stack, or 0. False if a new exception was set instead of it.
bool reraise(Activation& a, int depth);

}  // namespace assay::capture
