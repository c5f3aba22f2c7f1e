/// \file Where does a failure begin? Finds the first call whose result differs from eager's, and
/// the call that notices it. What the driver asks before the pass `divergence` and about the
/// result.
///
/// The questions are trials. One of the program with every value as a result tells which values
/// differ, at the price of one compilation; if it raises, it is asked about its first calls only,
/// and how many those may be tells which call raises. One of the calls side by side, each with what
/// eager computed as its own inputs, tells about gradients, and about faults that later calls hide.
#pragma once

#include "reduce/candidate.h"
#include "reduce/judge.h"
#include "reduce/workspace.h"

namespace assay::reduce {

/// The program's values must be known. `wanted` is how it fails.
Ends locate(const Candidate& program, const sandbox::Signature& wanted, Judge& judge,
            VerdictLog& log, const Workspace& workspace);

}  // namespace assay::reduce
