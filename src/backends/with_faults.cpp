#include "backends/with_faults.h"

#include "observe/observe.h"

namespace assay::backends {

std::shared_ptr<const graph::Graph> FaultInjection::faulty_graph(const CompileRequest& request) {
  if (request.role == Role::captured) {
    captured_ = request.graph;
    if (prefers_halves_) return request.graph;
    auto faulty = injector_.inject(request.graph);
    is_in_captured_ = injector_.count() != 0;
    return faulty;
  }
  if (is_in_captured_) return request.graph;
  const std::size_t before = injector_.count();
  auto faulty = injector_.inject(request.graph);
  // An operator of the captured graph may have become others: `linear` is an addmm here.
  if (prefers_halves_ && request.role != Role::backward && injector_.count() == before) {
    faulty = injector_.inject_where_from(request.graph, *captured_);
  }
  return faulty;
}

void FaultInjection::warn_if_none() const {
  if (injector_.count() != 0) return;
  observe::log(observe::Component::backends, observe::Level::warning, [&] {
    return "no fault was injected: nothing in the graph calls '" + injector_.faults().front().op +
           "'";
  });
}

Compiler with_faults(Compiler compiler, std::shared_ptr<FaultInjection> faults) {
  return
      [compiler = std::move(compiler), faults = std::move(faults)](const CompileRequest& request) {
        CompileRequest faulty = request;
        faulty.graph = faults->faulty_graph(request);
        return compiler(faulty);
      };
}

}  // namespace assay::backends
