/// \file Further faults of the program that was reduced: reduce.cpp looks for them at the end.
#pragma once

#include "reduce/candidate.h"
#include "reduce/findings.h"
#include "reduce/judge.h"
#include "reduce/workspace.h"

namespace assay::reduce {

/// Tries the original program without the calls of the operators that are to blame, those of the
/// best one: does the rest fail too? What does is saved; if it passes, and `keep_passing`, it is a
/// program that does not fail.
void look_for_others(const Candidate& original, const Candidate& best, bool keep_passing,
                     Judge& judge, const Workspace& workspace, Findings& findings);

}  // namespace assay::reduce
