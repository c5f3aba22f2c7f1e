#include "backends/bind_inputs.h"

namespace assay::backends {

Compiler bind_inputs(Compiler compiler) {
  return [compiler = std::move(compiler)](const CompileRequest& request) {
    CompileRequest unbound = request;
    unbound.bound_inputs = 0;
    auto compiled = compiler(unbound);
    if (request.bound_inputs == 0) return compiled;
    const auto bound = std::span(request.inputs).last(request.bound_inputs);
    return make_compiled_graph([compiled = std::move(compiled),
                                bound = std::vector<c10::IValue>(bound.begin(), bound.end())](
                                   std::span<c10::IValue> inputs, Outputs& outputs) {
      c10::SmallVector<c10::IValue, 8> all(std::make_move_iterator(inputs.begin()),
                                           std::make_move_iterator(inputs.end()));
      all.append(bound.begin(), bound.end());
      compiled->call(all, outputs);
    });
  };
}

}  // namespace assay::backends
