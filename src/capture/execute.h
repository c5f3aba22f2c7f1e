/// \file Decoding and executing one instruction of a frame. Called by the loop (loop.cpp), which
/// does what comes between instructions.
#pragma once

#include <opcode.h>

#include "capture/activation.h"

namespace assay::capture {

/// One instruction with its EXTENDED_ARG prefixes folded.
struct Instruction {
  int index = 0;  ///< Of its opcode, behind the prefixes.
  int opcode = 0;
  int arg = 0;
  int end = 0;  ///< Index of the instruction behind it and its inline caches.
};

/// CPython may have specialized the code while we look at it.
inline Instruction decode(const _Py_CODEUNIT* code, int index) {
  Instruction instruction;
  instruction.index = index;
  instruction.opcode = _PyOpcode_Deopt[_Py_OPCODE(code[index])];
  instruction.arg = _Py_OPARG(code[index]);
  while (instruction.opcode == EXTENDED_ARG) {
    const _Py_CODEUNIT unit = code[++instruction.index];
    instruction.opcode = _PyOpcode_Deopt[_Py_OPCODE(unit)];
    instruction.arg = instruction.arg << 8 | _Py_OPARG(unit);
  }
  instruction.end = instruction.index + 1 + _PyOpcode_Caches[instruction.opcode];
  return instruction;
}

/// How an instruction ended.
enum class Outcome {
  done,
  interruptible,  ///< Done, and this is a place to look for signals and other threads.
  raised,
  reraised,  ///< Raised, but the traceback knows this frame already.
  returned,
  yielded,
  unfinished,    ///< The rest of a call follows: this was KW_NAMES or PRECALL.
  not_executed,  ///< Left to CPython.
};

/// `keyword_names` (borrowed) goes from KW_NAMES to CALL.
Outcome execute(Activation& a, const Instruction& instruction, PyObject*& keyword_names);

}  // namespace assay::capture
