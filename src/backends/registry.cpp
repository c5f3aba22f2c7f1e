#include "backends/registry.h"

#include <algorithm>

#include "assay/error.h"
#include "backends/fault.h"
#include "base/nearest_names.h"
#include "observe/observe.h"

namespace assay::backends {

const Backend& find_backend(std::string_view name) {
  const auto table = all_backends();
  const auto found = std::ranges::find(table, name, &Backend::name);
  if (found != table.end()) return *found;
  std::vector<std::string> names;
  for (const Backend& backend : table) names.emplace_back(backend.name);
  const auto nearest = base::nearest_names(name, names);
  std::string hint = "`assay backends` lists them all";
  if (!nearest.empty()) {
    hint = "did you mean " + nearest[0];
    for (std::size_t i = 1; i < nearest.size(); ++i) hint += " or " + nearest[i];
    hint += "? `assay backends` lists them all";
  }
  throw UserError("unknown backend '" + std::string(name) + "'", hint);
}

Callable compile(std::string_view backend, const Subject& subject) {
  const Backend& found = find_backend(backend);
  const observe::Phase phase("backend_compile", observe::Component::backends);
  observe::log(observe::Component::backends, observe::Level::info, [&] {
    return "compiling a graph of " + std::to_string(subject.graph->size()) + " nodes with " +
           std::string(found.name);
  });
  const auto faults = current_faults();
  if (faults.empty()) return found.compile(subject);
  FaultInjector injector(faults, found.name);
  Subject faulty = subject;
  if (subject.wrap_compiler) {
    faulty.faults = &injector;
    Callable compiled = found.compile(faulty);
    if (injector.count() != 0) return compiled;
    faulty.faults = nullptr;
  }
  faulty.graph = injector.inject(subject.graph);
  if (injector.count() == 0) faulty.faults = &injector;
  Callable compiled = found.compile(faulty);
  if (injector.count() == 0) {
    observe::log(observe::Component::backends, observe::Level::warning, [&] {
      return "no fault was injected: nothing in the graph calls '" + faults.front().op + "'";
    });
  }
  return compiled;
}

}  // namespace assay::backends
