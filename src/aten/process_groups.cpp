#include "aten/process_groups.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

#include "assay/error.h"

namespace assay::aten {

namespace {

using Tensors = std::vector<at::Tensor>;
using Done = c10::intrusive_ptr<c10d::Work>;

// All there is to do has been done.
class FinishedWork : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds) override { return true; }
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::NoneType::get());
    future->markCompleted();
    return future;
  }
};

Done finished() { return c10::make_intrusive<FinishedWork>(); }

// Collectives write into their results unseen by autograd.
class SimulatedBackend : public c10d::Backend {
 public:
  SimulatedBackend(int rank, int size) : Backend(rank, size) {}
  const std::string getBackendName() const override { return "fake"; }

  // The others have nothing to add.
  Done broadcast(Tensors&, const c10d::BroadcastOptions&) override { return finished(); }
  Done allreduce(Tensors&, const c10d::AllreduceOptions&) override { return finished(); }
  Done allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override {
    return finished();
  }
  Done barrier(const c10d::BarrierOptions&) override { return finished(); }

  Done _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions&) override {
    gather(output, input);
    return finished();
  }
  Done allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::AllgatherOptions&) override {
    for (std::size_t i = 0; i < outputs.size(); ++i) gather(outputs[i], inputs[i]);
    return finished();
  }
  Done _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions&) override {
    scatter(output, input);
    return finished();
  }
  Done reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::ReduceScatterOptions&) override {
    for (std::size_t i = 0; i < outputs.size(); ++i) scatter(outputs[i], inputs[i]);
    return finished();
  }

  // What the others send is as much of this process's own data as fits.
  Done alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& sizes_out,
                     std::vector<std::int64_t>& sizes_in, const c10d::AllToAllOptions&) override {
    const at::AutoDispatchBelowAutograd below;
    if (sizes_out.empty() && sizes_in.empty()) {
      output.copy_(input);
      return finished();
    }
    std::int64_t at = 0;
    for (std::int64_t left : sizes_out) {
      if (left > 0 && input.size(0) == 0) {
        throw UserError("an exchange between processes has nothing to send and something to take");
      }
      while (left > 0) {
        const std::int64_t part = std::min(left, input.size(0));
        output.narrow(0, at, part).copy_(input.narrow(0, 0, part));
        at += part;
        left -= part;
      }
    }
    return finished();
  }

 private:
  void gather(const at::Tensor& output, const at::Tensor& input) const {
    const at::AutoDispatchBelowAutograd below;
    for (const at::Tensor& part : output.chunk(getSize())) part.copy_(input);
  }
  void scatter(const at::Tensor& output, const at::Tensor& input) const {
    if (input.numel() != output.numel() * getSize()) {
      throw UserError("a tensor of " + std::to_string(input.numel()) +
                      " elements cannot be scattered to " + std::to_string(getSize()) +
                      " processes in parts of " + std::to_string(output.numel()));
    }
    const at::AutoDispatchBelowAutograd below;
    output.copy_(input.chunk(getSize())[static_cast<std::size_t>(getRank())]);
  }
};

using Registered = c10::intrusive_ptr<c10d::ProcessGroup>;

struct Simulated {
  std::mutex mutex;
  ProcessGroups groups;
  std::vector<Registered> registered;  // c10d's registry does not own them
};

Simulated& simulated() {
  static auto* instance = new Simulated();  // never destroyed: c10d's registry may be gone by then
  return *instance;
}

bool is_registered(const std::string& name) {
  try {
    (void)c10d::resolve_process_group(name);
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

Registered add(const std::string& name, const ProcessGroupSize& group) {
  const int rank = static_cast<int>(group.rank);
  const int size = static_cast<int>(group.size);
  auto made = c10::make_intrusive<c10d::ProcessGroup>(rank, size);
  constexpr auto kKind = c10d::ProcessGroup::BackendType::CUSTOM;
  made->setBackend(
      c10::DeviceType::CPU, kKind,
      c10::intrusive_ptr<c10d::Backend>(c10::make_intrusive<SimulatedBackend>(rank, size)));
  made->setDefaultBackend(kKind);
  made->setGroupName(name);
  c10d::register_process_group(name, made);
  return made;
}

}  // namespace

void simulate_process_groups(const ProcessGroups& groups) {
  Simulated& now = simulated();
  const std::lock_guard lock(now.mutex);
  if (now.groups == groups) return;
  for (const auto& [name, group] : now.groups) c10d::unregister_process_group(name);
  now.groups.clear();
  now.registered.clear();
  for (const auto& [name, group] : groups) {
    if (is_registered(name)) continue;
    now.registered.push_back(add(name, group));
    now.groups.emplace(name, group);
  }
}

bool simulates_process_groups() {
  Simulated& now = simulated();
  const std::lock_guard lock(now.mutex);
  return !now.groups.empty();
}

}  // namespace assay::aten
