/// \file The decorator that makes a compiler faulty on purpose: it is given graphs with faults in
/// them (backends/fault.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "assay/compiler.h"
#include "backends/fault.h"
#include "graph/graph.h"

namespace assay::backends {

/// The faults of one compilation: of a captured graph, or of the halves that are made of it. Shared
/// by the compilers of all of them, which may run later.
class FaultInjection {
 public:
  /// With `prefers_halves` they go into the halves, otherwise into the captured graph if that calls
  /// the operator, else into the halves.
  FaultInjection(std::vector<Fault> faults, const std::string& backend, bool prefers_halves)
      : injector_(std::move(faults), backend), prefers_halves_(prefers_halves) {}

  /// The graph to compile instead of the request's.
  std::shared_ptr<const graph::Graph> faulty_graph(const CompileRequest& request);

  /// Logs a warning if no graph called the operator.
  void warn_if_none() const;

 private:
  FaultInjector injector_;
  bool prefers_halves_;
  bool is_in_captured_ = false;
  std::shared_ptr<const graph::Graph> captured_;
};

Compiler with_faults(Compiler compiler, std::shared_ptr<FaultInjection> faults);

}  // namespace assay::backends
