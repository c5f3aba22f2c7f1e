// The components and artifacts an event can belong to, and the levels it can have.
// Included by every emitter through observe/observe.h; what each name means is in log_names.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::observe {

/// Severity of an event, with the numbers of Python's `logging`, so `%(levelno)s` means the same.
/// `off` is only used as a threshold: no event has it.
enum class Level : std::uint8_t { debug = 10, info = 20, warning = 30, error = 40, off = 255 };

/// A part of the program that logs at levels. The order is that of the table in log_names.h.
enum class Component : std::uint8_t {
  torch,
  dynamo,
  dynamic,
  aot,
  autograd,
  inductor,
  cache,
  pass_manager,
  parse,
  aten,
  backends,
  compare,
  repro,
  sandbox,
  reduce,
  observe,
  cli,
};

/// One kind of printed thing (a graph, code, guards), switched on and off as a whole.
enum class Artifact : std::uint8_t {
  guards,
  verbose_guards,
  bytecode,
  graph,
  graph_code,
  graph_sizes,
  graph_breaks,
  side_effects,
  trace_source,
  trace_call,
  trace_bytecode,
  recompiles,
  recompiles_verbose,
  aot_graphs,
  aot_joint_graph,
  pre_grad_graphs,
  post_grad_graphs,
  ir_pre_fusion,
  ir_post_fusion,
  schedule,
  fusion,
  loop_ordering,
  output_code,
  kernel_code,
  perf_hints,
  inductor_metrics,
  caching,
  passes,
  run,
};

inline constexpr std::size_t component_count = static_cast<std::size_t>(Component::cli) + 1;
inline constexpr std::size_t artifact_count = static_cast<std::size_t>(Artifact::run) + 1;
inline constexpr std::size_t channel_count = component_count + artifact_count;

/// Where an event belongs: one component or one artifact. Both convert to it silently.
class Channel {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a Channel is never written, only its two kinds are.
  constexpr Channel(Component component) : index_(static_cast<std::uint8_t>(component)) {}
  constexpr Channel(Artifact artifact)
      : index_(static_cast<std::uint8_t>(component_count + static_cast<std::size_t>(artifact))) {}
  // NOLINTEND(google-explicit-constructor)

  /// Position in the table of names: components first, then artifacts.
  constexpr std::size_t index() const { return index_; }
  constexpr bool is_artifact() const { return index_ >= component_count; }
  constexpr bool operator==(const Channel&) const = default;

 private:
  std::uint8_t index_;
};

}  // namespace assay::observe
