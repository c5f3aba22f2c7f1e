/// \file One program as a repro: its graph, inputs and settings. Used by repro/read_text.cpp, which
/// finds the program in a text.
#pragma once

#include "graph/python_parser.h"
#include "repro/repro_file.h"

namespace assay::repro {

/// Fills `file`, whose source is set, from the statements of a program. Throws `UserError` if they
/// are not a graph.
void read_program(ReproFile& file, const graph::python::Module& module);

}  // namespace assay::repro
