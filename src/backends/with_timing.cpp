#include "backends/with_timing.h"

#include "graph/graph.h"
#include "observe/observe.h"

namespace assay::backends {

Compiler with_timing(Compiler compiler) {
  return [compiler = std::move(compiler)](const CompileRequest& request) {
    if (request.role != Role::captured) return compiler(request);  // part of what is timed already
    const observe::Phase phase("backend_compile", observe::Component::backends);
    observe::log(observe::Component::backends, observe::Level::info, [&] {
      return "compiling a graph of " + std::to_string(request.graph->size()) + " nodes with " +
             request.context->backend;
    });
    return compiler(request);
  };
}

}  // namespace assay::backends
