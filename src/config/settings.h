/// \file Every setting of Assay's. This is the one table: the C++ accessors (config/config.h), the
/// environment, `assay config`, `assay.config` in Python and docs/config.md come from it. To add a
/// setting, add a row; then run `tools/config_pages.py`, which writes what is generated from it.
///
/// Names are PyTorch's (torch._dynamo.config, torch._inductor.config) where it has one.
#pragma once

#include <array>
#include <cstddef>

#include "config/push.h"
#include "config/setting.h"

namespace assay::config {

inline constexpr auto settings = std::to_array<Setting>({
    // The debug wrapper (docs/debug_wrapper.md).
    {"repro_after",
     choice("", "dynamo|aot"),
     {"ASSAY_REPRO_AFTER", "TORCHDYNAMO_REPRO_AFTER"},
     "which compilers the debug wrapper watches: whole backends (dynamo), or those of the forward "
     "and backward graphs (aot)"},
    {"repro_level",
     integer(2, 1, 4),
     {"ASSAY_REPRO_LEVEL", "TORCHDYNAMO_REPRO_LEVEL"},
     "when the debug wrapper writes what: 1 the graph, on a failure; 2 a launcher, on a failure; 3 "
     "a launcher, before every run; 4 a launcher, when results are wrong"},
    {"repro_forward_only",
     boolean(false),
     {"ASSAY_REPRO_FORWARD_ONLY", "TORCHDYNAMO_REPRO_FORWARD_ONLY"},
     "the debug wrapper does not look at gradients"},
    {"repro_ignore_non_fp",
     boolean(false),
     {"ASSAY_REPRO_IGNORE_NON_FP", "TORCHDYNAMO_REPRO_IGNORE_NON_FP"},
     "the debug wrapper compares floating-point results only"},
    {"repro_tolerance",
     number(1e-3),
     {"ASSAY_REPRO_TOLERANCE", "TORCHDYNAMO_REPRO_TOLERANCE"},
     "how far results may differ from eager at repro_level 4"},
    {"repro_inputs",
     choice("data", "data|shapes"),
     {"ASSAY_REPRO_INPUTS", "TORCHDYNAMO_REPRO_INPUTS"},
     "what the debug wrapper writes of inputs: their data, or their shapes and ranges only"},
    {"reduce",
     choice("", "now|launcher"),
     {"ASSAY_REDUCE", "TORCHDYNAMO_REDUCE"},
     "what follows a failure that was written: reduce it now, or leave the launcher; unset, it is "
     "now after dynamo and launcher after aot"},
    {"debug_dir_root",
     text("torch_compile_debug"),
     {"ASSAY_COMPILE_DEBUG_DIR", "TORCH_COMPILE_DEBUG_DIR", "torch_compile_debug"},
     "where each process makes its directory for what it writes; the variables name its parent"},

    // The debug directory: what every compilation leaves (docs/kernels.md).
    {"trace.enabled",
     boolean(false),
     {"ASSAY_COMPILE_DEBUG", "TORCH_COMPILE_DEBUG"},
     "write a debug directory: for every compilation its graphs, loops, generated code and logs"},
    {"trace.debug_log", boolean(true), {"ASSAY_TRACE_DEBUG_LOG"}, "the debug directory has logs"},
    {"trace.fx_graph",
     boolean(true),
     {"ASSAY_TRACE_FX_GRAPH"},
     "the debug directory has fx_graph_readable.py and fx_graph_runnable.py"},
    {"trace.inputs",
     boolean(true),
     {"ASSAY_TRACE_INPUTS"},
     "fx_graph_runnable.py has the data of its inputs beside it, for `assay rerun`"},
    {"trace.fx_graph_transformed",
     boolean(true),
     {"ASSAY_TRACE_FX_GRAPH_TRANSFORMED"},
     "the debug directory has fx_graph_transformed.py, the graph that is lowered"},
    {"trace.ir_pre_fusion",
     boolean(true),
     {"ASSAY_TRACE_IR_PRE_FUSION"},
     "the debug directory has ir_pre_fusion.txt"},
    {"trace.ir_post_fusion",
     boolean(true),
     {"ASSAY_TRACE_IR_POST_FUSION"},
     "the debug directory has ir_post_fusion.txt"},
    {"trace.output_code",
     boolean(true),
     {"ASSAY_TRACE_OUTPUT_CODE"},
     "the debug directory has output_code.cpp"},

    // Compiling.
    {"cache_size_limit",
     integer(8, 0),
     {"ASSAY_CACHE_SIZE_LIMIT"},
     "how many graphs a compiled function may have before further calls run eagerly"},
    {"automatic_dynamic_shapes",
     boolean(true),
     {"ASSAY_AUTOMATIC_DYNAMIC_SHAPES"},
     "what was captured for two sizes of a tensor is captured once more, for all of them"},
    {"accumulated_cache_size_limit",
     integer(256, 0),
     {"ASSAY_ACCUMULATED_CACHE_SIZE_LIMIT"},
     "the same, if those beyond cache_size_limit are for other sizes of tensors"},
    {"paranoid",
     boolean(false),
     {"ASSAY_PARANOID"},
     "wherever the guards of a captured segment hold, run and record the program again instead, "
     "and "
     "fail if that is not the same segment"},
    {"debug_function",
     text(""),
     {"ASSAY_DEBUG_FUNCTION", "TORCHDYNAMO_DEBUG_FUNCTION"},
     "capture only functions of this name, and what they call"},
    {"suppress_errors",
     boolean(false),
     {"ASSAY_SUPPRESS_ERRORS", "TORCHDYNAMO_SUPPRESS_ERRORS"},
     "run eagerly what a backend fails to compile"},
    {"verbose",
     boolean(false),
     {"ASSAY_VERBOSE", "TORCHDYNAMO_VERBOSE"},
     "whole stack traces with errors of capture and of backends"},
    {"replay_record_enabled",
     boolean(false),
     {"ASSAY_COMPILE_REPLAY_RECORD", "TORCH_COMPILE_REPLAY_RECORD"},
     "write a record of each frame whose capture fails, for assay.replay()"},
    {"disable_passes",
     text(""),
     {"ASSAY_DISABLE_PASSES"},
     "passes that are switched off, with commas between them; `assay passes` lists them"},
    {"pass_limit",
     integer(-1, -1),
     {"ASSAY_PASS_LIMIT"},
     "how many rewrites passes may make, to find by bisection the one at fault; -1 is no "
     "limit"},
    {"inject_fault",
     text(""),
     {"ASSAY_INJECT_FAULT"},
     "faults that every backend is given, OPERATOR:KIND with commas between them: relu:accuracy"},
    {"kernel_fault",
     text(""),
     {"ASSAY_KERNEL_FAULT"},
     "makes a rewrite of the kernels' pipeline wrong: its n-th, STEP:N, or those of an operator, "
     "STEP:OPERATOR: inline_producers:exp"},

    // Kernels (docs/kernels.md).
    {"matmul",
     choice("auto", "auto|aten|onednn"),
     {"ASSAY_MATMUL"},
     "who multiplies large float32 matrices for the backend native: ATen's BLAS, oneDNN, or oneDNN "
     "where it is faster, by the kind of CPU"},
    {"kernel_sizes",
     choice("auto", "auto|fixed|passed"),
     {"ASSAY_KERNEL_SIZES"},
     "sizes in the kernels of the backend native: constants in their code (fixed), passed when "
     "they "
     "are called (passed), or passed once a kernel comes again with other sizes (auto)"},
    {"cxx",
     text(""),
     {"ASSAY_CXX", "CXX"},
     "the C++ compiler of kernels; unset, g++ or clang++ on the PATH"},
    {"compile_timeout",
     integer(300, 1),
     {"ASSAY_COMPILE_TIMEOUT"},
     "after how many seconds a C++ compiler is stopped"},
    {"cache_dir",
     text(""),
     {"ASSAY_CACHE_DIR"},
     "where compiled kernels are kept; unset, assay in the user's cache directory"},
    {"kernel_cache_megabytes",
     integer(512, 1, 1 << 20),
     {"ASSAY_KERNEL_CACHE_MEGABYTES"},
     "how large the cache of compiled kernels may grow; what was not used for longest is removed"},

    // Logs and traces (docs/observe.md).
    {"logs",
     text(""),
     {"ASSAY_LOGS", "TORCH_LOGS"},
     "what is logged: names of components and artifacts, as in +dynamo,graph_code; help lists them",
     push_logs},
    {"logs_format",
     text(""),
     {"ASSAY_LOGS_FORMAT", "TORCH_LOGS_FORMAT"},
     "what a log line begins with, in the syntax of Python's logging module",
     push_logs_format},
    {"logs_out",
     text(""),
     {"ASSAY_LOGS_OUT", "TORCH_LOGS_OUT"},
     "a file that gets the log lines as well",
     push_logs_out},
    {"chrome_trace",
     text(""),
     {"ASSAY_TRACE"},
     "a file that gets a Chrome trace (Perfetto) of what was done; %p in it is the process id",
     push_trace},

    // Programs that Assay starts, and libraries that it loads.
    {"plugins",
     text(""),
     {"ASSAY_PLUGINS"},
     "shared libraries with backends, separated by ':'; loaded by the assay command and its trial "
     "servers before anything else"},
    {"binary",
     text(""),
     {"ASSAY_BINARY"},
     "the assay command that reduces failures; unset, the one beside the library, then on the "
     "PATH"},
    {"python",
     text(""),
     {"ASSAY_PYTHON"},
     "the Python that runs stock PyTorch for --stack torch; unset, that of VIRTUAL_ENV, then "
     "python3"},

    // Known to PyTorch, and here without effect so far.
    {"fallback_random",
     boolean(false),
     {"ASSAY_FALLBACK_RANDOM"},
     "reserved: compiled programs draw the random numbers that eager draws"},
});

}  // namespace assay::config
