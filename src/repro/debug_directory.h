/// \file The debug directory: with the setting `trace.enabled` (TORCH_COMPILE_DEBUG=1) every
/// compilation leaves there what it was given and what it made of that, laid out as PyTorch's.
///
///     torch_compile_debug/run_<date>-pid_<pid>/
///       torchdynamo/debug.log                       capture
///       torchinductor/aot_model___0_debug.log       autograd: the joint graph, the partition
///       torchinductor/model__0_forward_1.0/         one per half
///         debug.log, fx_graph_readable.py, fx_graph_runnable.py (with the inputs' data),
///         fx_graph_transformed.py, ir_pre_fusion.txt, ir_post_fusion.txt, output_code.cpp
///
/// A backend that does not lower to loops leaves the files that exist for it; each file has a
/// switch `trace.*`. The front ends put `debug_directory_decorator()` around a backend and its
/// halves.
#pragma once

#include "assay/compiler.h"

namespace assay::repro {

/// Writes the directory of one compilation. Empty while the setting is off.
CompilerDecorator debug_directory_decorator();

/// Starts to write `torchdynamo/debug.log`, if the setting is on and it was not started. What is
/// captured before that is not in it.
void start_capture_log();

}  // namespace assay::repro
