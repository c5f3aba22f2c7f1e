/// \file What a server does before its first trial.
#pragma once

namespace assay::sandbox {

/// Whatever a process does for the first time costs it more than later: symbols are bound,
/// operators found, tables filled. Done here, on this one thread, no trial has to do it again.
void prepare_for_trials();

}  // namespace assay::sandbox
