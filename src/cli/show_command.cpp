// `assay show FILE`: what is in a graph file.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "assay/error.h"
#include "aten/runner.h"
#include "cli/commands.h"
#include "cli/dot.h"
#include "cli/terminal.h"
#include "graph/annotation.h"
#include "graph/print.h"
#include "repro/inputs.h"
#include "repro/repro_file.h"

namespace assay::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kLargestShown = 5;

std::string short_target(const graph::Node& node) {
  constexpr std::string_view kOps = "torch.ops.";
  const std::string& name = node.target().name();
  if (node.op() == graph::Op::call_method) return "." + name;
  return name.starts_with(kOps) ? name.substr(kOps.size()) : name;
}

struct Sized {
  std::uint64_t bytes = 0;
  const graph::Node* node = nullptr;
};

// Nothing if a size depends on a symbol that only the run would tell.
std::optional<std::uint64_t> tensor_bytes(const graph::TensorMeta& meta,
                                          const graph::SymbolValues& symbols) {
  std::uint64_t elements = 1;
  for (const graph::SizeExpr& size : meta.sizes) {
    bool is_known = true;
    size.for_each_symbol([&](const std::string& name) { is_known &= symbols.contains(name); });
    if (!is_known) return std::nullopt;
    elements *= static_cast<std::uint64_t>(size.evaluate(symbols));
  }
  return elements * c10::elementSize(meta.dtype);
}

struct Summary {
  std::size_t calls = 0;
  std::vector<std::pair<std::string, std::size_t>> operators;  // most frequent first
  std::vector<Sized> largest;
  std::string shapes_missing;  // why, if they are
};

Summary summarize_graph(const repro::ReproFile& file) {
  Summary summary;
  std::map<std::string, std::size_t> counts;
  for (const graph::Node& node : file.graph->nodes()) {
    if (node.is_call()) {
      ++summary.calls;
      ++counts[short_target(node)];
    }
    if (const graph::TensorMeta* meta = node.meta.value.tensor()) {
      if (const auto bytes = tensor_bytes(*meta, file.symbols)) {
        summary.largest.push_back({*bytes, &node});
      }
    }
  }
  summary.operators.assign(counts.begin(), counts.end());
  std::ranges::stable_sort(summary.operators, std::greater<>(),
                           &std::pair<std::string, std::size_t>::second);
  std::ranges::stable_sort(summary.largest, std::greater<>(), &Sized::bytes);
  summary.largest.resize(std::min(summary.largest.size(), kLargestShown));
  return summary;
}

bool lacks_shapes(const graph::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const graph::Node& node) {
    return (node.is_call() || node.op() == graph::Op::placeholder) && !node.meta.value.known();
  });
}

// Stock PyTorch's files do not say the shapes of intermediate values: run once to learn them.
std::string find_shapes(repro::ReproFile& file) {
  try {
    const c10::AutoGradMode grad(file.stage != repro::Stage::after_aot);
    aten::propagate_metadata(*file.graph, repro::load_inputs(file).values, file.source.get());
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

json as_json(const repro::ReproFile& file, const Summary& summary) {
  json report = {{"file", file.source->file},   {"stage", to_string(file.stage)},
                 {"nodes", file.graph->size()}, {"calls", summary.calls},
                 {"symbols", file.symbols},     {"notes", file.notes}};
  for (const auto& [name, count] : summary.operators) report["operators"][name] = count;
  report["inputs"] = json::array();
  for (const graph::Node* node : std::as_const(*file.graph).placeholders()) {
    report["inputs"].push_back(
        {{"name", node->name()}, {"type", graph::annotation_text(node->meta.value)}});
  }
  report["largest_tensors"] = json::array();
  for (const Sized& sized : summary.largest) {
    report["largest_tensors"].push_back({{"node", sized.node->name()},
                                         {"bytes", sized.bytes},
                                         {"type", graph::annotation_text(sized.node->meta.value)}});
  }
  if (!summary.shapes_missing.empty()) report["shapes_missing"] = summary.shapes_missing;
  return report;
}

void print_text(const repro::ReproFile& file, const Summary& summary) {
  const auto inputs = std::as_const(*file.graph).placeholders();
  std::printf("%s: %s (%s, %s), %s\n", bold(file.source->file).c_str(),
              counted(file.graph->size(), "node").c_str(), counted(inputs.size(), "input").c_str(),
              counted(summary.calls, "call").c_str(), to_string(file.stage));
  if (!file.symbols.empty()) {
    std::string text;
    for (const auto& [name, value] : file.symbols) {
      text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(value);
    }
    std::printf("symbols: %s\n", text.c_str());
  }
  for (const std::string& note : file.notes) {
    std::printf("%s %s\n", dim("note:").c_str(), note.c_str());
  }
  std::vector<std::vector<std::string>> rows;
  for (const graph::Node* node : inputs) {
    rows.push_back({node->name(), graph::annotation_text(node->meta.value)});
  }
  std::printf("\n%s\n%s", bold("inputs").c_str(), table(rows).c_str());
  rows.clear();
  for (const auto& [name, count] : summary.operators) rows.push_back({std::to_string(count), name});
  std::printf("\n%s\n%s", bold("operators").c_str(), table(rows, {0}).c_str());
  rows.clear();
  for (const Sized& sized : summary.largest) {
    rows.push_back({human_bytes(sized.bytes), sized.node->name(),
                    graph::annotation_text(sized.node->meta.value)});
  }
  if (!rows.empty()) {
    std::printf("\n%s\n%s", bold("largest tensors").c_str(), table(rows, {0}).c_str());
  }
  if (!summary.shapes_missing.empty()) {
    std::printf("\n%s shapes are unknown, because the graph did not run: %s\n",
                dim("note:").c_str(), summary.shapes_missing.c_str());
  }
}

}  // namespace

int show(const ShowCommand& command) {
  repro::ReproFile file = repro::read_repro_file(command.file);
  std::string shapes_missing;
  if (command.run && lacks_shapes(*file.graph)) shapes_missing = find_shapes(file);
  if (command.dot) {
    std::fputs(to_dot(*file.graph).c_str(), stdout);
  } else if (command.code) {
    std::fputs(graph::print(*file.graph).c_str(), stdout);
  } else {
    Summary summary = summarize_graph(file);
    summary.shapes_missing = shapes_missing;
    if (command.json) {
      const std::string text =
          as_json(file, summary).dump(2, ' ', false, json::error_handler_t::replace);
      std::printf("%s\n", text.c_str());
    } else {
      print_text(file, summary);
    }
  }
  return 0;
}

}  // namespace assay::cli
