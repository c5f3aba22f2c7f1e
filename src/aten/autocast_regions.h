/// \file Autocast regions that a program enters and leaves while it is recorded, as calls of the
/// graph. Used by aten/record_calls.cpp.
///
/// Regions also bound the life of autocast's cache: a leaf is cast once, and its gradients are
/// summed in the lower precision, until the outermost region ends. So the recorded regions are
/// nested and end as the program's do.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <vector>

#include "graph/graph.h"

namespace assay::aten {

/// Autocast on the CPU, as it is on this thread.
struct AutocastState {
  bool is_enabled = false;
  c10::ScalarType dtype = c10::ScalarType::BFloat16;
  bool is_cache_enabled = true;

  static AutocastState current();
  bool operator==(const AutocastState&) const = default;
};

/// Leaves, at its end, the regions that a run of a graph entered and did not leave, because a call
/// between raised.
class AutocastScope {
 public:
  AutocastScope();
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState before_ = AutocastState::current();
  int depth_;
};

class AutocastRegions {
 public:
  /// What autocast is now counts as being outside of the program.
  explicit AutocastRegions(graph::Graph& graph);

  /// Adds calls that enter or leave regions if autocast has changed since the last call. To be
  /// called before each call of the program is added.
  void record();
  /// Adds calls that leave all regions.
  void leave();
  /// True if autocast is not what it was outside of the program.
  bool is_inside() const { return !(AutocastState::current() == outer_); }

 private:
  struct Region {
    graph::Node* enter;
    AutocastState state;
  };

  void enter(const AutocastState& state);
  void leave_innermost();
  const AutocastState& recorded() const {
    return regions_.empty() ? outer_ : regions_.back().state;
  }
  at::Tensor cast_probe() const;

  graph::Graph& graph_;
  AutocastState outer_;
  int outer_depth_;
  std::vector<Region> regions_;  // innermost last
  at::Tensor probe_;             // a leaf whose cast is in the cache until the cache is cleared
  at::Tensor probe_cast_;
};

}  // namespace assay::aten
