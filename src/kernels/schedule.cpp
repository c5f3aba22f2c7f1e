#include "kernels/schedule.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "kernels/cost.h"
#include "kernels/local_rows.h"
#include "kernels/loop_edit.h"
#include "kernels/program_uses.h"
#include "kernels/varying.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_schedule(
    {.name = "schedule",
     .room = "kernels",
     .description = "orders loops by strides and chooses vectors and threads"});

// Below this much work (in about additions) a second thread starts too late to help.
constexpr std::int64_t kParallelWork = 65536;
constexpr std::int64_t kShortestVectorLoop = 8;

bool is_scanning(const Pass& pass) {
  return std::ranges::any_of(pass.body,
                             [](const Instruction& access) { return is_scan(access.op); });
}

// What it costs that an access walks along a loop: nothing if it stays or goes to the neighbor.
std::int64_t stride_cost(std::int64_t stride) {
  return stride == 0 ? 0 : std::min<std::int64_t>(std::abs(stride), 16);
}

// For each of `count` loops from `first` on: the stride of stores, then the cost of loads. The loop
// with the least is innermost.
struct LoopWeight {
  std::int64_t stores = 0;
  std::int64_t loads = 0;
};

LoopWeight weigh(const Pass& pass, std::size_t variable) {
  LoopWeight weight;
  for (const Instruction& access : pass.body) {
    if (writes_memory(access.op)) {
      weight.stores = std::max(weight.stores, std::abs(access.index.coefficient(variable)));
    } else if (reads_memory(access.op)) {
      weight.loads += stride_cost(access.index.coefficient(variable));
    }
  }
  return weight;
}

std::vector<std::size_t> order_by(const std::vector<LoopWeight>& weights, bool stores_first) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t left, std::size_t right) {
    const LoopWeight& one = weights[left];
    const LoopWeight& other = weights[right];
    if (stores_first && one.stores != other.stores) return one.stores > other.stores;
    if (one.loads != other.loads) return one.loads > other.loads;
    return one.stores > other.stores;
  });
  return order;
}

void order_outer_loops(Kernel& kernel) {
  std::vector<LoopWeight> weights(kernel.outer.size());
  for (const Pass& pass : kernel.passes) {
    for (std::size_t loop = 0; loop < weights.size(); ++loop) {
      const LoopWeight weight = weigh(pass, loop);
      weights[loop].stores = std::max(weights[loop].stores, weight.stores);
      weights[loop].loads += weight.loads;
    }
  }
  permute_outer_loops(kernel, order_by(weights, true));
}

void order_inner_loops(Kernel& kernel, Pass& pass) {
  if (pass.inner.size() < 2 || is_scanning(pass)) return;
  std::vector<LoopWeight> weights;
  for (std::size_t loop = 0; loop < pass.inner.size(); ++loop) {
    weights.push_back(weigh(pass, kernel.outer.size() + loop));
  }
  permute_inner_loops(kernel, pass, order_by(weights, true));
}

// Accesses that vectors along a loop would make at once, less those that they would make one by
// one; with the points at which they are made.
std::int64_t vector_gain(const Kernel& kernel, std::size_t pass, std::size_t variable) {
  const std::vector<bool> varies = values_that_vary(kernel, pass, variable);
  const std::int64_t count = points(kernel.passes[pass].inner);
  std::int64_t gain = 0;
  for (const Instruction& access : kernel.passes[pass].body) {
    if (!touches_memory(access.op)) continue;
    const std::int64_t stride = access.index.coefficient(variable);
    gain += has_varying_offset(access, varies) || stride > 1 || stride < 0 ? -count : count;
  }
  return gain;
}

Kernel::Vectorize choose_vectors(const Kernel& kernel) {
  const std::size_t outer = kernel.outer.size();
  const bool has_inner =
      std::ranges::any_of(kernel.passes, [](const Pass& pass) { return !pass.inner.empty(); });
  if (!has_inner) return Kernel::Vectorize::inner;
  std::int64_t inner_gain = 0;
  std::int64_t outer_gain = 0;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  bool has_scan = false;
  for (std::size_t i = 0; i < kernel.passes.size(); ++i) {
    const Pass& pass = kernel.passes[i];
    if (pass.inner.empty()) continue;
    shortest = std::min(shortest, pass.inner.back());
    has_scan = has_scan || is_scanning(pass);
    inner_gain += vector_gain(kernel, i, outer + pass.inner.size() - 1);
    if (outer > 0) outer_gain += vector_gain(kernel, i, outer - 1);
  }
  const bool has_wide_outer = outer > 0 && kernel.outer.back() >= kShortestVectorLoop;
  if (has_scan)
    return has_wide_outer && outer_gain > 0 ? Kernel::Vectorize::outer : Kernel::Vectorize::none;
  if (!has_wide_outer) return Kernel::Vectorize::inner;
  // Most lanes of vectors along a short loop would be idle.
  if (shortest < kShortestVectorLoop) return Kernel::Vectorize::outer;
  return outer_gain > inner_gain ? Kernel::Vectorize::outer : Kernel::Vectorize::inner;
}

std::int64_t work_of(const Kernel& kernel) {
  std::int64_t work = 0;
  for (const Pass& pass : kernel.passes) {
    std::int64_t cost = 0;
    for (const Instruction& instruction : pass.body) {
      cost += std::max(arithmetic_cost(instruction), 1);
    }
    work += cost * points(pass.inner);
  }
  return work * points(kernel.outer);
}

bool is_serial(const Kernel& kernel) {
  bool is = false;
  for_each_instruction(kernel, [&](const Instruction& instruction) {
    is = is || instruction.op == Op::store_indirect || instruction.op == Op::add_indirect;
  });
  return is;
}

// Of a serial kernel: points that are neighbors along its last loop write to neighbors in memory,
// so that a vector of them does not write to one place twice.
bool writes_in_rows(const Kernel& kernel) {
  if (kernel.outer.empty() || kernel.passes.size() != 1 || !kernel.passes[0].inner.empty()) {
    return false;
  }
  const std::size_t last = kernel.outer.size() - 1;
  const std::vector<bool> varies = values_that_vary(kernel, 0, last);
  return kernel.outer[last] >= kShortestVectorLoop &&
         std::ranges::all_of(kernel.passes[0].body, [&](const Instruction& access) {
           return !writes_memory(access.op) ||
                  (access.index.coefficient(last) == 1 && !has_varying_offset(access, varies));
         });
}

// `fused_add_relu_3`: the operators in it, each once, at most five.
std::string name_of(const Kernel& kernel, std::size_t number) {
  std::string name = kernel.nodes.size() > 1 ? "fused" : "";
  std::set<std::string_view> seen;
  for (const graph::Node* node : kernel.nodes) {
    const std::string_view op = node->target().base_name();
    if (seen.size() < 5 && seen.insert(op).second) {
      name += (name.empty() ? "" : "_") + std::string(op);
    }
  }
  return name + "_" + std::to_string(number);
}

// Buffers that more than one step uses, or that leave the program.
std::vector<bool> shared_buffers(const LoopProgram& program) {
  std::vector<bool> is_shared = output_buffers(program);
  std::vector<int> users(program.buffers.size(), 0);
  for (const Step& step : program.steps) {
    const StepUses uses = uses_of(step);
    std::set<BufferId> used(uses.reads.begin(), uses.reads.end());
    used.insert(uses.writes.begin(), uses.writes.end());
    for (BufferId buffer : used) ++users[buffer];
  }
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    if (users[id] > 1) is_shared[id] = true;
    for (BufferId base : program.buffers[id].aliases) is_shared[base] = true;
  }
  return is_shared;
}

}  // namespace

void schedule(LoopProgram& program, StepContext& context) {
  const std::vector<bool> is_shared = shared_buffers(program);
  std::size_t number = 0;
  for (Step& step : program.steps) {
    auto* kernel = std::get_if<Kernel>(&step);
    if (kernel == nullptr) continue;
    kernel->name = name_of(*kernel, number++);
    if (!context.may_apply()) continue;
    if (is_serial(*kernel)) {  // in the order of its loops
      if (writes_in_rows(*kernel)) kernel->vectorize = Kernel::Vectorize::inner;
      context.applied(*kernel);
      continue;
    }
    order_outer_loops(*kernel);
    for (Pass& pass : kernel->passes) order_inner_loops(*kernel, pass);
    join_loops(*kernel);
    kernel->vectorize = choose_vectors(*kernel);
    kernel->is_parallel = work_of(*kernel) >= kParallelWork && points(kernel->outer) > 1;
    if (kernel->vectorize == Kernel::Vectorize::inner) {
      make_rows_local(*kernel, program, is_shared);
    }
    context.applied(*kernel);
  }
}

}  // namespace assay::kernels
