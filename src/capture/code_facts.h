/// \file Facts about code objects: which locals are still needed at an instruction, which line an
/// instruction belongs to.
#pragma once

#include <string>
#include <vector>

#include "capture/cpython_311.h"

namespace assay::capture {

/// Whether each variable (slot of localsplus) may still be read when execution goes on at code unit
/// `instruction`. Cells and free variables always may; so may all where the code can look at its
/// own frame (locals(), eval, ...).
const std::vector<bool>& live_locals(PyCodeObject* code, int instruction);

struct CodeLine {
  std::string file;
  int line = 0;
  std::string function;
  std::string text;
};
CodeLine line_of(PyCodeObject* code, int instruction);

/// Code of torch or the standard library: rarely a root of its own, and not the user's line.
bool is_library_code(PyCodeObject* code);
/// Code of torch.optim. It may be a root: a program's step() is torch's own function.
bool is_code_of_optimizers(PyCodeObject* code);
/// Code of the Python package `assay`.
bool is_code_of_ours(PyCodeObject* code);
/// Which files these are: prefixes of paths.
void set_library_files(std::vector<std::string> prefixes);

/// The instruction (opcode and argument, EXTENDED_ARG folded, specializations undone) that starts
/// at a code unit, and where the next one starts.
struct CodeInstruction {
  int opcode = 0;
  int argument = 0;
  int next = 0;
};
CodeInstruction instruction_at(PyCodeObject* code, int index);

}  // namespace assay::capture
