// The backends that run the captured graph operator by operator, without differentiating it.
#include <cstdio>

#include "aten/runner.h"
#include "backends/backends.h"
#include "backends/error.h"
#include "backends/lower.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::backends {

CompiledPointer compile_eager(const CompileRequest& request) {
  return aten::run_with_aten(request);
}

CompiledPointer compile_eager_noexcept(const CompileRequest& request) {
  return make_compiled_graph([eager = compile_eager(request), name = request.context->backend](
                                 std::span<c10::IValue> inputs, Outputs& outputs) {
    const std::string sentence = "the captured graph should not have raised, but ";
    try {
      eager->call(inputs, outputs);
    } catch (const InternalError&) {
      throw;
    } catch (const aten::OperatorError& error) {
      throw BackendError(name, sentence + error.what(), error.node_name(), error.provenance());
    } catch (const std::exception& error) {
      throw BackendError(name, sentence + "did: " + error.what());
    }
  });
}

CompiledPointer compile_pre_dispatch_eager(const CompileRequest& request) {
  CompileRequest lowered = lower(request);
  const std::string text = graph::print(*lowered.graph);
  observe::artifact(observe::Artifact::pre_grad_graphs, [&] { return text; });
  std::fprintf(stderr, "%s", text.c_str());  // whoever chooses this backend wants to see the graph
  auto context = std::make_shared<CompileContext>(*lowered.context);
  context->source = nullptr;  // the lowered graph is not in the user's file
  lowered.context = std::move(context);
  return aten::run_with_aten(lowered);
}

}  // namespace assay::backends
