/// \file One Python frame while our loop executes it: what the loop (loop.h), the operations it
/// calls (operations.h) and whoever watches instruction boundaries (the segment driver) share.
#pragma once

#include "capture/cpython_311.h"

namespace assay::capture {

class Operations;
class Source;
struct Activation;

/// What the loop does after it has asked at the start of an instruction.
enum class Step {
  execute,    ///< Execute the instruction.
  moved,      ///< `next`, locals and stack were changed: go on at `next`.
  returned,   ///< The frame is finished; `result` holds its value.
  raised,     ///< An exception is set: handle it as if the instruction had raised it.
  hand_over,  ///< CPython executes the rest of this frame.
};

/// Asked before every instruction while `Activation::boundary` is set. KW_NAMES, PRECALL and CALL
/// are one instruction here: nobody is asked between them.
class Boundary {
 public:
  virtual ~Boundary() = default;
  virtual Step at_instruction(Activation& activation) = 0;
};

/// A value with the place it came from. Numbers cannot be known by identity, so the loop carries
/// their origin beside them, wherever it moves a value without looking at it (locals, stack).
struct Operand {
  PyObject* object = nullptr;  ///< Borrowed.
  Source* origin = nullptr;    ///< Null for most values.
};

struct Activation {
  PyThreadState* thread = nullptr;
  _PyInterpreterFrame* frame = nullptr;
  PyCodeObject* code = nullptr;
  PyObject** locals = nullptr;  ///< `localsplus`: locals, cells, free variables, then the stack.
  PyObject** stack = nullptr;   ///< The first stack slot.
  PyObject** top = nullptr;  ///< The first free stack slot; valid at boundaries and in operations.
  Source** origins = nullptr;  ///< Parallel to `locals`, the stack included.
  int instruction = 0;         ///< Index of the instruction being executed (its first code unit).
  int next = 0;                ///< Index of the code unit at which execution goes on.
  PyObject* result = nullptr;  ///< For `Step::returned`: a new reference.
  Source* result_origin = nullptr;  ///< The origin of the value that the frame returned.
  /// Set by the operations `call` and `call_ex`: the origin of what they return. The loop puts it
  /// on the stack beside the result and resets it.
  Source* returned_origin = nullptr;
  Operations* operations = nullptr;
  Boundary* boundary = nullptr;

  int stack_depth() const { return static_cast<int>(top - stack); }
};

}  // namespace assay::capture
