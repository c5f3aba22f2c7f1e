/// \file Moves a file's program to the CPU: its inputs, its constants and the devices that its
/// calls name. Called by repro/repro_file.cpp.
#pragma once

#include "repro/repro_file.h"

namespace assay::repro {

/// Every other device becomes the CPU; one note says which one it was.
void move_to_cpu(ReproFile& file);

}  // namespace assay::repro
