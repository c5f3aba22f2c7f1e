#include "graph/pass_manager.h"

#include <algorithm>

#include "assay/error.h"
#include "config/config.h"
#include "graph/passes/passes.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::graph {

namespace {

constexpr Pass kPasses[] = {
    {"dead_code", "removes calls whose result nobody uses", remove_dead_code},
    {"common_subexpressions", "computes equal expressions once", merge_common_subexpressions},
    {"noops", "removes views that change nothing", remove_noops},
};

void check(const Graph& graph, const Pass& pass, const VerifyOptions& options) {
  const auto problems = find_problems(graph, options);
  if (problems.empty()) return;
  std::string text = "the pass '" + std::string(pass.name) + "' left a broken graph:";
  for (const std::string& problem : problems) text += "\n  " + problem;
  throw InternalError(text);
}

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

void read_settings(PassOptions& options) {
  for (std::string_view rest = config::get<"disable_passes">(); !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const std::string_view name = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (name.empty()) continue;
    if (std::ranges::find(kPasses, name, &Pass::name) == std::end(kPasses)) {
      std::string known;
      for (const Pass& pass : kPasses)
        known += (known.empty() ? "" : ", ") + std::string(pass.name);
      throw UserError(
          config::source<"disable_passes">() + ": there is no pass '" + std::string(name) + "'",
          "the passes are " + known);
    }
    options.disabled.emplace(name);
  }
  if (const auto limit = config::get<"pass_limit">(); limit >= 0) options.application_limit = limit;
}

std::vector<PassRecord> run_passes(Graph& graph, std::span<const Pass> passes,
                                   const PassOptions& options) {
  std::vector<PassRecord> records;
  std::int64_t applications = 0;
  for (const Pass& pass : passes) {
    PassRecord& record = records.emplace_back();
    record.name = pass.name;
    if (options.disabled.contains(pass.name)) {
      record.was_disabled = true;
      continue;
    }
    const observe::Phase phase(pass.name, observe::Component::pass_manager);
    PassContext context(options.facts, applications, options.application_limit);
    pass.run(graph, context);
    record.applications = context.applications();
    check(graph, pass, options.verify);
    if (record.applications > 0) {
      observe::event(observe::Kind::pass, observe::Component::pass_manager, observe::Level::info,
                     [&](observe::Event& event) {
                       event.name = pass.name;
                       event.field("applications", record.applications);
                       event.field("nodes", static_cast<std::int64_t>(graph.size()));
                     });
      observe::artifact(observe::Artifact::passes, [&] {
        return "after " + record.name + " (" + std::to_string(record.applications) +
               " rewrites)\n" + print(graph);
      });
    }
  }
  return records;
}

}  // namespace assay::graph
