/// \file What the size symbols of a repro file's inputs stand for. Stock PyTorch writes
/// `reader.symint(4)` and then `reader.tensor(buf0, (s0, 8))`, and does not always say that s0 is
/// that 4. Called by repro/repro_file.cpp once the inputs are known.
#pragma once

#include <vector>

#include "graph/module_constants.h"
#include "repro/input_syntax.h"
#include "repro/repro_file.h"

namespace assay::repro {

/// Gives every symbol that sizes mention a value in `file.symbols`, and every integer input that
/// has none: from the file's own constants, the integers before the tensors that mention a symbol,
/// the size of a storage, stock's hint; else 4, with a note in `file.notes`.
void settle_symbols(ReproFile& file, std::vector<InputReader::Written>& inputs,
                    const graph::ModuleConstants& constants);

/// True for the names that stock gives size symbols: s77, u0, zf3.
bool is_symbol_name(std::string_view name);

}  // namespace assay::repro
