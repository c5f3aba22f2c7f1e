#include "sandbox/run_trial.h"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/hash.h>
#include <unistd.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "aten/failure.h"
#include "aten/runner.h"
#include "backends/compile.h"
#include "backends/fault.h"
#include "compare/models.h"
#include "compare/same.h"
#include "config/config.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"
#include "sandbox/analyze.h"
#include "sandbox/origin.h"
#include "sandbox/record.h"
#include "sandbox/report.h"

namespace assay::sandbox {

namespace {

using aten::Value;
using nlohmann::json;

// What the current exception says, whose status is `failed` or `invalid` if it is the program's.
// The node that failed is one of a graph that was made of the file's; the suspect is the file's
// own.
json describe_exception(const graph::Graph* graph, const char* status) {
  const aten::FailureDetail failure = aten::describe_exception();
  const bool is_our_bug = failure.blame == aten::FailureDetail::Blame::assay;
  json piece = {{"status", is_our_bug ? "internal" : status},
                {"type", failure.type},
                {"message", failure.message}};
  if (failure.node.empty()) return piece;
  piece["node"] = failure.node;
  if (!failure.target.empty()) piece["operator"] = failure.target;
  const graph::Node* origin =
      graph == nullptr ? nullptr : find_origin(*graph, failure.node, failure.provenance);
  if (origin != nullptr) {
    piece["operator"] = origin->target().name();
    piece["suspects"] = {origin->name()};
  }
  return piece;
}

// The stage that was asked about went well.
class StageLimitReached {};

// While it lives, operators choose their precision as under torch.amp.autocast('cpu').
class Autocast {
 public:
  explicit Autocast(bool is_on) : is_on_(is_on) {
    if (is_on_) at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Autocast() {
    if (!is_on_) return;
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool is_on_;
};

// What the compiled program computes is not what eager computes.
class AccuracyFailure : public aten::ProgramError {
 public:
  explicit AccuracyFailure(const std::string& difference)
      : ProgramError("AccuracyError", difference, difference) {}

  const char* python_class() const noexcept override { return "AccuracyError"; }
};

// Fills in every node's metadata from the values of the eager run.
aten::NodeObserver describing(graph::Graph& graph) {
  return [&graph](const graph::Node& node, const Value& value) {
    graph::Node* own = graph.find(node.name());
    if (own == &node) own->meta.value = aten::describe(value);
  };
}

class TrialRun {
 public:
  TrialRun(const Trial& trial, const ReportPipe& report) : trial_(trial), report_(report) {}

  const graph::Graph* graph() const { return file_.graph.get(); }
  /// What fails now is the program's own fault.
  bool is_before_backend() const { return stage_ <= Stage::eager; }

  void run() {
    enter(Stage::load);
    at::set_num_threads(trial_.threads);  // the server has started none, so this process may
    if (!trial_.inject.empty()) backends::set_faults(backends::parse_faults(trial_.inject));
    disable_passes();
    file_ = repro::parse_repro_file(trial_.file, "candidate.py");
    report_node_on_signals(report_.descriptor(), *file_.graph);
    has_gradients_ = file_.stage != repro::Stage::after_aot;
    inputs_ = repro::load_inputs(file_, {trial_.seed, trial_.save_directory}).values;
    const c10::AutoGradMode grad(has_gradients_);
    const Autocast autocast(trial_.autocast);
    if (trial_.task == Trial::Task::record) {
      enter(Stage::eager);
      record_values(*file_.graph, fresh_inputs(), trial_.save_directory,
                    c10::sha1(trial_.file).str(), file_.source.get(), [&](json values) {
                      report_.send({{"values", std::move(values)}});
                    });
      return;
    }
    if (trial_.eager) {
      enter(Stage::eager);
      if (const auto raised = exception_of([&] { run_eagerly(); })) {
        compare_exceptions(*raised);
        return;
      }
    }
    if (trial_.task == Trial::Task::analyze) {
      analyze();
      return;
    }
    const compare::Callable compiled = compile();
    if (trial_.task == Trial::Task::locate) {
      compare_all(compiled);
    } else if (trial_.accuracy) {
      compare(compiled);
    } else {
      enter(Stage::run);
      run_compiled(compiled);
    }
  }

 private:
  void disable_passes() const {
    if (trial_.disable_passes.empty()) return;
    std::string passes(config::get<"disable_passes">());
    if (!passes.empty()) passes += ',';
    config::set<"disable_passes">(passes + trial_.disable_passes);
  }

  compare::Callable compile() {
    enter(Stage::compile);
    repro::seed_generator(trial_.seed);
    const std::shared_ptr<const graph::Graph> graph(file_.graph.get(), [](const void*) {});
    return backends::compile_for_values(trial_.backend, graph, inputs_, file_.source.get());
  }

  struct Raised {
    std::exception_ptr exception;
    aten::FailureDetail detail;
  };

  // What the program itself raises, if that is compared; otherwise it comes through.
  template <typename Function>
  std::optional<Raised> exception_of(Function&& run) const {
    try {
      run();
      return std::nullopt;
    } catch (const StageLimitReached&) {
      throw;
    } catch (...) {
      const bool is_compared = trial_.accuracy && trial_.extras.exception;
      aten::FailureDetail detail = aten::describe_exception();
      const bool is_programs = detail.blame == aten::FailureDetail::Blame::program;
      if (!is_compared || !is_programs || detail.raised.empty()) throw;
      return Raised{std::current_exception(), std::move(detail)};
    }
  }

  // Does the compiled program raise what eager raised? If so, that is the program's own fault.
  void compare_exceptions(const Raised& eager) {
    std::string instead = "returns";
    try {
      const compare::Callable compiled = compile();
      enter(Stage::run);
      run_compiled(compiled);
    } catch (const InternalError&) {
      throw;
    } catch (...) {
      const aten::FailureDetail detail = aten::describe_exception();
      const bool is_alike = detail.raised.empty()
                                ? detail.message.find(eager.detail.message) != std::string::npos
                                : detail.raised == eager.detail.raised;
      if (is_alike) {
        stage_ = Stage::eager;
        std::rethrow_exception(eager.exception);
      }
      instead = "raises " + (detail.raised.empty() ? detail.type : detail.raised) + " (" +
                detail.message + ")";
    }
    enter(Stage::compare);
    compare::Comparison found;
    found.kind = compare::Comparison::Kind::exception;
    send_difference(found);
    report_.send({{"node", eager.detail.node},
                  {"suspects", {eager.detail.node}},
                  {"operator", eager.detail.target}});
    throw AccuracyFailure("eager raises " + eager.detail.raised + " (" + eager.detail.message +
                          "), the compiled program " + instead);
  }

  void enter(Stage stage) {
    if (trial_.until && *trial_.until < stage) throw StageLimitReached();
    stage_ = stage;
    report_.stage(stage);
  }

  std::vector<Value> fresh_inputs() const {
    return compare::clone_inputs_retaining_gradness(inputs_);
  }

  bool has_backward() const { return has_gradients_ && trial_.backward; }

  // Forward, then backward where something requires grad.
  void run_compiled(const compare::Callable& compiled) {
    repro::seed_generator(trial_.seed);
    const Value results = compiled(fresh_inputs());
    if (!has_backward() || !compare::requires_bwd_pass(results)) return;
    enter(Stage::backward);
    const at::Tensor loss = compare::reduce_to_scalar_loss(results);
    if (loss.defined() && loss.requires_grad()) loss.backward();
  }

  void run_eagerly() {
    repro::seed_generator(trial_.seed);
    const aten::GraphRunner runner(*file_.graph, file_.source.get());
    repro::seed_generator(trial_.seed);
    const auto run = [&](std::vector<Value> inputs) {
      return runner.run(std::move(inputs), describing(*file_.graph));
    };
    compare::Results results = compare::run_fwd_maybe_bwd(run, inputs_, !has_backward());
    if (!trial_.accuracy) return;
    eager_ = std::move(results);
    if (!trial_.repeat_eager) return;
    const std::string why =
        compare::why_not_repeatable(*file_.graph, *eager_, inputs_, comparison_options());
    if (!why.empty()) throw std::runtime_error(why);
  }

  compare::TwoModelsOptions comparison_options() const {
    compare::TwoModelsOptions options;
    options.only_forward = !has_backward();
    options.same.ignore_non_fp = trial_.ignore_non_fp;
    options.seed = trial_.seed;
    options.strides = trial_.extras.strides;
    options.aliasing = trial_.extras.aliasing;
    options.second_call = trial_.extras.second_call;
    return options;
  }

  void analyze() {
    enter(Stage::run);
    repro::seed_generator(trial_.seed);
    const auto found = first_wrong_call(*file_.graph, inputs_, trial_.backend);
    if (!found) return;
    enter(Stage::compare);
    send_difference(found->comparison);
    const graph::Node* node = file_.graph->find(found->node);
    report_.send({{"node", found->node},
                  {"suspects", {found->node}},
                  {"operator", node == nullptr ? "" : node->target().name()}});
    throw AccuracyFailure(found->call + ": " + found->comparison.message);
  }

  void send_difference(const compare::Comparison& found) const {
    report_.send({{"accuracy",
                   {{"kind", compare::to_string(found.kind)},
                    {"where", found.where},
                    {"error", found.error},
                    {"tolerance", found.tolerance}}}});
  }

  void compare(const compare::Callable& compiled) {
    const compare::TwoModelsOptions options = comparison_options();
    if (!eager_) enter(Stage::eager);
    const auto run = [&](std::vector<Value> inputs) {
      enter(Stage::run);
      Value results = compiled(std::move(inputs));
      enter(options.only_forward ? Stage::compare : Stage::backward);
      return results;
    };
    const compare::TwoModels two =
        compare::same_two_models(*file_.graph, run, inputs_, options, eager_ ? &*eager_ : nullptr);
    if (two.eager_failed) {
      stage_ = Stage::eager;
      throw std::runtime_error(two.eager_error);
    }
    enter(Stage::compare);
    if (!two.not_compared.empty()) report_.send({{"not_compared", two.not_compared}});
    const compare::Comparison& found = two.comparison;
    if (found.same) return;
    send_difference(found);
    if (found.kind == compare::Comparison::Kind::reference) stage_ = Stage::eager;
    throw AccuracyFailure(found.message);
  }

  void compare_all(const compare::Callable& compiled) {
    const compare::TwoModelsOptions options = comparison_options();
    const auto run = [&](std::vector<Value> inputs) {
      enter(Stage::run);
      Value results = compiled(std::move(inputs));
      enter(options.only_forward ? Stage::compare : Stage::backward);
      return results;
    };
    const auto found = compare::all_differences(*file_.graph, run, inputs_, options);
    if (found.empty()) return;
    enter(Stage::compare);
    json differences = json::array();
    for (const compare::Comparison& difference : found) {
      differences.push_back(
          {{"where", difference.where}, {"kind", compare::to_string(difference.kind)}});
    }
    report_.send({{"differences", std::move(differences)}});
    send_difference(found.front());
    throw AccuracyFailure(found.front().message);
  }

  const Trial& trial_;
  const ReportPipe& report_;
  repro::ReproFile file_;
  std::vector<Value> inputs_;
  bool has_gradients_ = false;
  std::optional<compare::Results> eager_;  // to compare with
  Stage stage_ = Stage::load;
};

}  // namespace

void run_command(const std::string& command, const std::filesystem::path& file, int report_pipe) {
  ReportPipe(report_pipe).stage(Stage::run);
  const std::string line = command + " \"$0\"";
  execl("/bin/sh", "sh", "-c", line.c_str(), file.c_str(), nullptr);
  _exit(127);
}

void run_trial(const Trial& trial, int report_pipe) noexcept {
  const ReportPipe report(report_pipe);
  TrialRun run(trial, report);
  try {
    run.run();
    report.send({{"status", "passed"}});
  } catch (const StageLimitReached&) {
    report.send({{"status", "passed"}});
  } catch (...) {
    report.send(describe_exception(run.graph(), run.is_before_backend() ? "invalid" : "failed"));
  }
}

}  // namespace assay::sandbox
