/// \file The backward graph of compiled halves: compiled with the forward graph, or when it is
/// first called. Used by compiled_halves.cpp.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "assay/compiler.h"

namespace assay::autograd {

class BackwardGraph {
 public:
  BackwardGraph(Compiler compiler, CompileRequest request, bool is_lazy)
      : compiler_(std::move(compiler)), request_(std::move(request)) {
    if (!is_lazy) compiled_ = compiler_(request_);
  }

  void call(std::span<c10::IValue> inputs, Outputs& outputs) const {
    compiled_for(inputs).call(inputs, outputs);
  }

 private:
  // One thread compiles, the others wait for it. If it fails, the next call tries again.
  const CompiledGraph& compiled_for(std::span<const c10::IValue> inputs) const {
    const std::lock_guard lock(mutex_);
    if (compiled_ == nullptr) {
      CompileRequest request = request_;
      request.inputs.assign(inputs.begin(), inputs.end());
      compiled_ = compiler_(request);
    }
    return *compiled_;
  }

  Compiler compiler_;
  CompileRequest request_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const CompiledGraph> compiled_;
};

}  // namespace assay::autograd
