// The one table of component and artifact names. It drives the TORCH_LOGS parser, `assay logs`,
// TORCH_LOGS=help and docs/observe.md. To add a name: one enumerator in channel.h, one row here,
// and the row that `observe_test` then asks for in the docs.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "observe/channel.h"

namespace assay::observe {

/// One row of the table.
struct LogName {
  Channel channel;
  std::string_view name;
  /// The component whose level counts when this name has none of its own.
  Component parent;
  /// An artifact that a DEBUG level of its parent does not switch on: it has to be named.
  bool off_by_default;
  std::string_view description;
  /// Nothing emits it yet. The name is accepted, the listings say so, and configure() warns.
  bool not_emitted = false;
};

inline constexpr bool not_yet = true;

inline constexpr std::array<LogName, channel_count> log_names = {{
    {Component::torch, "torch", Component::torch, false, "everything; `all` is the same name"},
    {Component::dynamo, "dynamo", Component::torch, false, "capture of Python frames as graphs"},
    {Component::dynamic, "dynamic", Component::dynamo, false, "dynamic shapes: symbols and sizes"},
    {Component::aot, "aot", Component::torch, false, "joint graphs and partitioning"},
    {Component::autograd, "autograd", Component::torch, false, "backward passes at run time"},
    {Component::inductor, "inductor", Component::torch, false, "lowering, fusion and kernels"},
    {Component::cache, "cache", Component::inductor, false, "compiled kernels kept on disk"},
    {Component::pass_manager, "pass_manager", Component::torch, false,
     "which graph pass ran, what it changed, what the verifier said"},
    {Component::parse, "parse", Component::torch, false, "reading graph text and repro files"},
    {Component::aten, "aten", Component::torch, false, "operators, schemas and the graph runner"},
    {Component::backends, "backends", Component::torch, false, "which backend was given a graph"},
    {Component::compare, "compare", Component::torch, false, "accuracy checks and divergence"},
    {Component::repro, "repro", Component::torch, false, "writing and running repro files"},
    {Component::sandbox, "sandbox", Component::torch, false, "trials in forked processes"},
    {Component::reduce, "reduce", Component::torch, false, "the reducer's steps and finds"},
    {Component::observe, "observe", Component::torch, false, "this event stream itself"},
    {Component::cli, "cli", Component::torch, false, "the assay command"},

    {Artifact::guards, "guards", Component::dynamo, false, "the guards of every compiled frame"},
    {Artifact::verbose_guards, "verbose_guards", Component::dynamo, true,
     "guards with the line that made each of them", not_yet},
    {Artifact::bytecode, "bytecode", Component::dynamo, true,
     "the instructions of every captured frame"},
    {Artifact::graph, "graph", Component::dynamo, false, "the captured graph as a table"},
    {Artifact::graph_code, "graph_code", Component::dynamo, false,
     "the captured graph as a Python program"},
    {Artifact::graph_sizes, "graph_sizes", Component::dynamo, false,
     "the sizes of every tensor in the captured graph"},
    {Artifact::graph_breaks, "graph_breaks", Component::dynamo, false,
     "why and where a graph ended early"},
    {Artifact::side_effects, "side_effects", Component::dynamo, false,
     "writes to objects that are redone after a graph has run"},
    {Artifact::trace_source, "trace_source", Component::dynamo, false,
     "each source line as it is captured"},
    {Artifact::trace_call, "trace_call", Component::dynamo, false,
     "each call expression as it is captured", not_yet},
    {Artifact::trace_bytecode, "trace_bytecode", Component::dynamo, false,
     "each instruction and the stack as it is captured"},
    {Artifact::recompiles, "recompiles", Component::dynamo, false,
     "which guard failed and made a frame compile again"},
    {Artifact::recompiles_verbose, "recompiles_verbose", Component::dynamo, true,
     "every guard that failed, not only the first"},
    {Artifact::aot_graphs, "aot_graphs", Component::aot, false,
     "forward and backward graphs after partitioning"},
    {Artifact::aot_joint_graph, "aot_joint_graph", Component::aot, false,
     "the joint graph before partitioning"},
    {Artifact::pre_grad_graphs, "pre_grad_graphs", Component::inductor, false,
     "the graph before differentiation, as the kernels' passes see it"},
    {Artifact::post_grad_graphs, "post_grad_graphs", Component::inductor, false,
     "the ATen graph that is lowered to loops"},
    {Artifact::ir_pre_fusion, "ir_pre_fusion", Component::inductor, true, "loop IR before fusion"},
    {Artifact::ir_post_fusion, "ir_post_fusion", Component::inductor, true, "loop IR after fusion"},
    {Artifact::schedule, "schedule", Component::inductor, true,
     "the order of kernels and extern calls"},
    {Artifact::fusion, "fusion", Component::inductor, true,
     "why two loops were fused or kept apart"},
    {Artifact::loop_ordering, "loop_ordering", Component::inductor, true,
     "the order chosen for the loops of a kernel", not_yet},
    {Artifact::output_code, "output_code", Component::inductor, true,
     "the generated C++ of a whole graph"},
    {Artifact::kernel_code, "kernel_code", Component::inductor, true,
     "the generated C++ kernel by kernel", not_yet},
    {Artifact::perf_hints, "perf_hints", Component::inductor, true,
     "what kept a kernel from being faster"},
    {Artifact::inductor_metrics, "inductor_metrics", Component::inductor, true,
     "bytes moved, elements and kernels per graph", not_yet},
    {Artifact::caching, "caching", Component::cache, true, "every cache key, hit and miss",
     not_yet},
    {Artifact::passes, "passes", Component::pass_manager, true,
     "the graph's text after each pass that changed it"},
    {Artifact::run, "run", Component::aten, true, "operators as they run", not_yet},
}};

/// Names of stock PyTorch with nothing behind them here. TORCH_LOGS is shared with stock, so they
/// are accepted, and configure() warns that they do nothing.
inline constexpr auto stock_only_names = std::to_array<std::string_view>({
    "annotation",
    "aot_graphs_effects",
    "async_compile",
    "auto_chunker",
    "autotuning",
    "benchmarking",
    "c10d",
    "compiled_autograd",
    "compiled_autograd_verbose",
    "compute_dependencies",
    "cudagraph_static_inputs",
    "cudagraphs",
    "ddp",
    "ddp_graphs",
    "distributed",
    "dtensor",
    "export",
    "fake_tensor",
    "fsdp",
    "graph_code_verbose",
    "graph_region_expansion",
    "hierarchical_compile",
    "incremental",
    "loop_tiling",
    "native_dsl",
    "node_runtime_estimation",
    "not_implemented",
    "onnx",
    "onnx_diagnostics",
    "overlap",
    "overlap_scheduling",
    "pp",
    "sym_node",
    "trace_shape_events",
});

/// The row of a channel.
constexpr const LogName& log_name(Channel channel) { return log_names[channel.index()]; }

/// "component" or "artifact".
std::string_view kind_of(const LogName& row);

/// The row called `name`, or nullptr. `all` finds the row of `torch`.
const LogName* find_log_name(std::string_view name);

/// At most three known names that look like `name`, the nearest first.
std::vector<std::string_view> nearest_log_names(std::string_view name);

/// The table as aligned text, one name per line under a heading (`assay logs`).
std::string render_log_names();

/// The table in Markdown, as docs/observe.md holds it.
std::string render_log_names_markdown();

/// What TORCH_LOGS=help prints: the grammar, examples and the table.
std::string log_help();

}  // namespace assay::observe
