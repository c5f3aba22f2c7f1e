/// \file The process groups of a repro file with collectives. A file that sets up fake ones runs in
/// one process: stock PyTorch writes `setup_fake_process_groups({'0': {'size': 8, 'rank': 0}})`,
/// and people write `init_process_group(backend="fake", ...)`. Called by repro/repro_file.cpp.
#pragma once

#include "graph/python_parser.h"
#include "repro/repro_file.h"

namespace assay::repro {

/// Takes the groups from a call of either function; does nothing for other calls.
void read_process_groups(ReproFile& file, const graph::python::Expression& call);

/// `{'0': {'size': 8, 'rank': 0}}`
std::string print_process_groups(const aten::ProcessGroups& groups);

}  // namespace assay::repro
