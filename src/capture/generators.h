/// \file Suspended generators: where one stands is noted when a segment ends while it is in use,
/// and a replay makes another one that stands there.
#pragma once

#include "capture/cpython_311.h"
#include "capture/ref.h"

namespace assay::capture {

/// Where a generator stands that has not been started, and one that has ended.
inline constexpr int kNotStarted = -1;
inline constexpr int kEnded = -2;

/// What there is to know of a generator: a tuple of its function (None if it has ended), where it
/// stands (the index of the instruction that suspended it, or one of these), and what its variables
/// and its stack hold, with `missing_value()` for nothing. Null if it cannot be moved: it handles
/// an exception, or is not of a plain generator function.
Ref state_of(PyObject* generator);
/// The same for a generator whose frame is just going on, with `count` variables and values on the
/// stack, of which what is sent to it is the last.
Ref state_of_entered(_PyInterpreterFrame* frame, int count);
PyObject* missing_value();

/// A generator of the function that has not been started: its variables hold nothing of use. Null
/// with an exception set on failure.
Ref new_generator(PyObject* function);
/// One of the code that has ended.
Ref ended_generator(PyObject* code);
/// Puts values (null for nothing) into the variables and the stack of a new generator, and lets it
/// stand at an instruction.
void let_stand_at(PyObject* generator, int instruction, PyObject* const* values, int count);

}  // namespace assay::capture
