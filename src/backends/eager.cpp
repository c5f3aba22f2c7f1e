// The backends that run the captured graph operator by operator, without differentiating it.
#include <cstdio>

#include "aten/runner.h"
#include "backends/backends.h"
#include "backends/error.h"
#include "backends/lower.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::backends {

Callable compile_eager(const Subject& subject) {
  auto runner = std::make_shared<const aten::GraphRunner>(*subject.graph, subject.source);
  return [graph = subject.graph, runner](std::vector<aten::Value> inputs) {
    return runner->run(std::move(inputs));
  };
}

Callable compile_eager_noexcept(const Subject& subject) {
  constexpr std::string_view kName = "eager_noexcept";
  return [run = compile_eager(subject), kName](std::vector<aten::Value> inputs) {
    const std::string sentence = "the captured graph should not have raised, but ";
    try {
      return run(std::move(inputs));
    } catch (const aten::OperatorError& error) {
      throw BackendError(kName, sentence + error.what(), error.node_name(), error.provenance());
    } catch (const std::exception& error) {
      throw BackendError(kName, sentence + "did: " + error.what());
    }
  };
}

Callable compile_pre_dispatch_eager(const Subject& subject) {
  Lowered lowered = lower(subject);
  const std::string text = graph::print(*lowered.graph);
  observe::artifact(observe::Artifact::pre_grad_graphs, [&] { return text; });
  std::fprintf(stderr, "%s", text.c_str());  // whoever chooses this backend wants to see the graph
  auto runner = std::make_shared<const aten::GraphRunner>(*lowered.graph);
  return [lowered = std::move(lowered), runner](std::vector<aten::Value> inputs) {
    return runner->run(lowered.with_captured(std::move(inputs)));
  };
}

}  // namespace assay::backends
