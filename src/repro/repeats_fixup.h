/// \file What stock's load_args does for repeat_interleave: random counts would not have the sum
/// that the graph expects, so they are replaced by ones that have. Used by repro/repro_file.cpp.
#pragma once

#include "repro/repro_file.h"

namespace assay::repro {

/// Gives the counts of `file.repeats_fixups` their contents. They are kept in the file, so that
/// everything that is written from it has them. Throws `UserError` for inputs that do not exist.
void apply_repeats_fixups(ReproFile& file);

}  // namespace assay::repro
