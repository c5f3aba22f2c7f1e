#include "graph/pass_manager.h"

#include <algorithm>
#include <mutex>
#include <tuple>

#include "assay/error.h"
#include "config/config.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::graph {

namespace {

// The passes of all rooms. Most are added before main(), those of a plug-in when it is loaded.
class Registry {
 public:
  static Registry& instance() {
    static Registry& registry = *new Registry;
    return registry;
  }

  void add(const Pass& pass) {
    internal_check(!find(pass.name), "two passes have the same name");
    const std::scoped_lock lock(mutex_);
    passes_.push_back(pass);
  }

  std::optional<Pass> find(std::string_view name) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(passes_, name, &Pass::name);
    return found == passes_.end() ? std::nullopt : std::optional<Pass>(*found);
  }

  std::vector<Pass> all() {
    const std::scoped_lock lock(mutex_);
    return passes_;
  }

 private:
  std::mutex mutex_;
  std::vector<Pass> passes_;
};

Pass find_pass(std::string_view name) {
  const auto found = Registry::instance().find(name);
  if (!found) throw InternalError("there is no pass '" + std::string(name) + "'");
  return *found;
}

void check(const Graph& graph, const Pass& pass, const VerifyOptions& options) {
  const auto problems = find_problems(graph, options);
  if (problems.empty()) return;
  std::string text = "the pass '" + std::string(pass.name) + "' left a broken graph:";
  for (const std::string& problem : problems) text += "\n  " + problem;
  throw InternalError(text);
}

std::shared_ptr<std::atomic<std::int64_t>> applications_of_process() {
  static const auto counter = std::make_shared<std::atomic<std::int64_t>>(0);
  return counter;
}

}  // namespace

bool PassContext::may_apply() {
  if (!is_required_) {
    std::int64_t made = options_.applications->load();
    do {
      if (made >= options_.application_limit) return false;
    } while (!options_.applications->compare_exchange_weak(made, made + 1));
  }
  ++own_applications_;
  return true;
}

RegisterPass::RegisterPass(const Pass& pass) { Registry::instance().add(pass); }

std::vector<Pass> all_passes() {
  std::vector<Pass> passes = Registry::instance().all();
  std::ranges::sort(passes, {}, [](const Pass& pass) { return std::tie(pass.room, pass.name); });
  return passes;
}

void disable_pass(PassOptions& options, std::string_view name) {
  std::string optional;
  for (const Pass& pass : all_passes()) {
    if (!pass.is_required) optional += (optional.empty() ? "" : ", ") + std::string(pass.name);
  }
  const auto found = Registry::instance().find(name);
  if (!found) {
    throw UserError("there is no pass '" + std::string(name) + "' to disable",
                    "the passes that can be disabled are " + optional);
  }
  if (found->is_required) {
    throw UserError("the pass '" + std::string(name) +
                        "' is required: nothing can be compiled without it, so it cannot be "
                        "disabled",
                    "the passes that can be disabled are " + optional);
  }
  options.disabled.emplace(name);
}

void read_settings(PassOptions& options) {
  for (std::string_view rest = config::get<"disable_passes">(); !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const std::string_view name = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (!name.empty()) disable_pass(options, name);
  }
  if (const auto limit = config::get<"pass_limit">(); limit >= 0) {
    options.application_limit = limit;
    options.applications = applications_of_process();
  }
}

RunningPass::RunningPass(std::string_view name, const PassOptions& options, Timing timing)
    : pass_(find_pass(name)),
      options_(options),
      is_enabled_(pass_.is_required || !options.disabled.contains(name)),
      context_(options, pass_.is_required) {
  if (is_enabled_ && timing == Timing::own) {
    phase_.emplace(pass_.name, observe::Component::pass_manager);
  }
}

void RunningPass::start_required() {
  internal_check(pass_.is_required, "a step whose result is needed is a required pass");
  context_.may_apply();
}

PassRecord RunningPass::finish(std::span<const Graph* const> graphs) {
  std::int64_t nodes = 0;
  for (const Graph* graph : graphs) nodes += static_cast<std::int64_t>(graph->size());
  return finish(
      [&] {
        for (const Graph* graph : graphs) check(*graph, pass_, options_.verify);
      },
      nodes,
      [&] {
        std::string text;
        for (const Graph* graph : graphs) text += (text.empty() ? "" : "\n") + print(*graph);
        return text;
      });
}

PassRecord RunningPass::finish(const std::function<void()>& verify, std::int64_t size,
                               const std::function<std::string()>& print) {
  PassRecord record{std::string(pass_.name), context_.applications(), !is_enabled_};
  if (is_enabled_) verify();
  phase_.reset();
  if (record.applications == 0) return record;
  observe::event(observe::Kind::pass, observe::Component::pass_manager, observe::Level::info,
                 [&](observe::Event& event) {
                   event.name = pass_.name;
                   event.field("applications", record.applications);
                   event.field("nodes", size);
                 });
  observe::artifact(observe::Artifact::passes, [&] {
    return "after " + record.name + " (" + std::to_string(record.applications) +
           (record.applications == 1 ? " rewrite)\n" : " rewrites)\n") + print();
  });
  return record;
}

void Pipeline::run(std::string_view pass, Graph& graph) {
  RunningPass running(pass, options_);
  internal_check(running.pass().rewrite != nullptr, "the pass rewrites a graph in place");
  if (running.is_enabled()) running.pass().rewrite(graph, running.context());
  const Graph* graphs[] = {&graph};
  records_.push_back(running.finish(graphs));
}

}  // namespace assay::graph
