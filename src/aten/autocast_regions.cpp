#include "aten/autocast_regions.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "aten/trace_keys.h"

namespace assay::aten {

namespace {

// How many regions this thread is in. Only the functions that enter and leave one tell.
int region_depth() {
  const int depth = at::autocast::increment_nesting() - 1;
  at::autocast::decrement_nesting();
  return depth;
}

}  // namespace

AutocastState AutocastState::current() {
  return {at::autocast::is_autocast_enabled(at::kCPU), at::autocast::get_autocast_dtype(at::kCPU),
          at::autocast::is_autocast_cache_enabled()};
}

AutocastScope::AutocastScope() : depth_(region_depth()) {}

AutocastScope::~AutocastScope() {
  const int depth = region_depth();
  if (depth <= depth_) return;
  for (int i = depth; i > depth_; --i) {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }
  at::autocast::set_autocast_enabled(at::kCPU, before_.is_enabled);
  at::autocast::set_autocast_dtype(at::kCPU, before_.dtype);
  at::autocast::set_autocast_cache_enabled(before_.is_cache_enabled);
}

AutocastRegions::AutocastRegions(graph::Graph& graph)
    : graph_(graph), outer_(AutocastState::current()), outer_depth_(region_depth()) {}

void AutocastRegions::record() {
  const AutocastState now = AutocastState::current();
  if (regions_.empty() && now == outer_) return;
  const bool is_outside = now == outer_ && region_depth() <= outer_depth_;
  const bool is_cache_cleared =
      !regions_.empty() && now.is_cache_enabled && !cast_probe().is_same(probe_cast_);
  if (is_outside || is_cache_cleared) leave();
  if (is_outside || now == recorded()) return;
  const auto same = std::ranges::find(regions_, now, &Region::state);
  if (same == regions_.end()) {
    enter(now);
    return;
  }
  while (!(recorded() == now)) leave_innermost();
}

void AutocastRegions::enter(const AutocastState& state) {
  graph::Node& node =
      graph_.call_function("torch.amp.autocast_mode._enter_autocast",
                           {"cpu", state.dtype, state.is_enabled, state.is_cache_enabled});
  regions_.push_back({&node, state});
  if (!probe_.defined()) {
    const NotTracedScope guard;
    probe_ = at::zeros({1}).set_requires_grad(true);
  }
  if (state.is_cache_enabled) probe_cast_ = cast_probe();
}

void AutocastRegions::leave_innermost() {
  graph_.call_function("torch.amp.autocast_mode._exit_autocast", {regions_.back().enter});
  regions_.pop_back();
}

void AutocastRegions::leave() {
  while (!regions_.empty()) leave_innermost();
}

at::Tensor AutocastRegions::cast_probe() const {
  const NotTracedScope guard;
  return at::autocast::cached_cast(at::autocast::get_autocast_dtype(at::kCPU), probe_, at::kCPU);
}

}  // namespace assay::aten
