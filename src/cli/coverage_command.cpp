// `assay coverage [FILE]`: which operators become kernels, and which are calls of ATen, and why.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "aten/runner.h"
#include "autograd/aot.h"
#include "backends/compile.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "kernels/lower.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"

namespace assay::cli {

namespace {

using nlohmann::json;

// What becomes of the calls of one operator.
struct OperatorCoverage {
  std::string op;
  std::string becomes;  ///< kernel, view or extern
  std::string reason;   ///< Of an extern call.
  std::size_t calls = 0;
};

struct GraphCoverage {
  std::string role;
  std::vector<OperatorCoverage> operators;

  std::size_t count(const char* becomes) const {
    std::size_t calls = 0;
    for (const OperatorCoverage& row : operators) {
      if (row.becomes == becomes) calls += row.calls;
    }
    return calls;
  }
};

GraphCoverage cover(const kernels::LoopProgram& program, Role role) {
  std::set<const graph::Node*> in_kernels;
  std::map<const graph::Node*, std::string> extern_calls;
  for (const kernels::Step& step : program.steps) {
    if (const auto* kernel = std::get_if<kernels::Kernel>(&step)) {
      in_kernels.insert(kernel->nodes.begin(), kernel->nodes.end());
    } else {
      const auto& call = std::get<kernels::ExternCall>(step);
      extern_calls.emplace(call.node, call.reason);
    }
  }
  std::map<std::array<std::string, 3>, std::size_t> counts;
  for (const graph::Node& node : program.graph->nodes()) {
    if (!node.is_call()) continue;
    const auto extern_call = extern_calls.find(&node);
    if (extern_call != extern_calls.end()) {
      ++counts[{node.target().name(), "extern", extern_call->second}];
    } else {
      ++counts[{node.target().name(), in_kernels.contains(&node) ? "kernel" : "view", ""}];
    }
  }
  GraphCoverage made{to_string(role), {}};
  for (const auto& [key, calls] : counts) {
    made.operators.push_back({key[0], key[1], key[2], calls});
  }
  std::ranges::stable_sort(made.operators, std::greater(), &OperatorCoverage::calls);
  return made;
}

std::vector<GraphCoverage> cover_file(const std::filesystem::path& path) {
  const repro::ReproFile file = repro::read_repro_file(path);
  const repro::Inputs inputs = repro::load_inputs(file);
  const std::shared_ptr<const graph::Graph> graph(file.graph.get(), [](const void*) {});
  std::vector<GraphCoverage> made;
  autograd::AotOptions options;
  options.decompose = true;
  options.compiler = [&](const CompileRequest& half) {
    made.push_back(cover(kernels::lower(half.graph), half.role));
    return aten::run_with_aten(half);
  };
  const c10::AutoGradMode grad(file.stage != repro::Stage::after_aot);
  const autograd::AotGraph compiled(
      backends::request_for_values(graph, inputs.values, file.source.get()), options);
  return made;
}

json as_json(const std::vector<GraphCoverage>& graphs) {
  auto list = json::array();
  for (const GraphCoverage& graph : graphs) {
    auto rows = json::array();
    for (const OperatorCoverage& row : graph.operators) {
      rows.push_back({{"operator", row.op}, {"becomes", row.becomes}, {"calls", row.calls}});
      if (!row.reason.empty()) rows.back()["reason"] = row.reason;
    }
    list.push_back({{"graph", graph.role},
                    {"kernel", graph.count("kernel")},
                    {"view", graph.count("view")},
                    {"extern", graph.count("extern")},
                    {"operators", rows}});
  }
  return list;
}

void print_file(const std::vector<GraphCoverage>& graphs) {
  for (const GraphCoverage& graph : graphs) {
    std::printf("%s: %zu calls in kernels, %zu views, %zu calls of ATen\n\n",
                bold(graph.role).c_str(), graph.count("kernel"), graph.count("view"),
                graph.count("extern"));
    std::vector<std::vector<std::string>> rows = {{"calls", "operator", "becomes", "why"}};
    for (const OperatorCoverage& row : graph.operators) {
      rows.push_back({std::to_string(row.calls), row.op, row.becomes, row.reason});
    }
    std::printf("%s\n", table(rows, {0}).c_str());
  }
}

int list_lowerings(bool is_json) {
  auto list = json::array();
  std::vector<std::vector<std::string>> rows = {{"operator", "family"}};
  for (const kernels::Lowering& lowering : kernels::lowerings()) {
    list.push_back({{"operator", lowering.op}, {"family", lowering.family}});
    rows.push_back({std::string(lowering.op), std::string(lowering.family)});
  }
  if (is_json) {
    std::printf("%s\n", list.dump(2).c_str());
  } else {
    std::printf("%s\n%zu operators are lowered; every other one is a call of ATen.\n",
                table(rows).c_str(), rows.size() - 1);
  }
  return 0;
}

}  // namespace

int coverage(const CoverageCommand& command) {
  if (command.file.empty()) return list_lowerings(command.json);
  const std::vector<GraphCoverage> graphs = cover_file(command.file);
  if (command.json) {
    std::printf("%s\n", as_json(graphs).dump(2).c_str());
  } else {
    print_file(graphs);
  }
  return 0;
}

}  // namespace assay::cli
