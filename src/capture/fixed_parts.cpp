#include "capture/fixed_parts.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "aten/operator_record.h"
#include "capture/pieces.h"
#include "observe/observe.h"

namespace assay::capture {

namespace {

using aten::Value;
using graph::Node;
using graph::ValueMeta;

// A part with fewer operators that compute something is not worth a call of its own.
constexpr std::size_t kSmallPart = 3;

bool has_numbers(const std::vector<graph::SizeExpr>& expected, at::IntArrayRef found) {
  return std::ranges::equal(expected, found, [](const graph::SizeExpr& size, std::int64_t number) {
    return size.evaluate({}) == number;
  });
}

bool has_same_sizes(const Value& value, const ValueMeta& meta) {
  if (const auto* tensor = meta.tensor()) {
    return value.is_tensor() && value.leaf.toTensor().layout() == c10::kStrided &&
           has_numbers(tensor->sizes, value.leaf.toTensor().sizes()) &&
           has_numbers(tensor->strides, value.leaf.toTensor().strides());
  }
  const auto* metas = std::get_if<std::vector<ValueMeta>>(&meta.value);
  if (metas == nullptr || value.is_tensor() || value.is_number()) return false;
  return std::ranges::equal(aten::unpack(value), *metas, has_same_sizes);
}

bool is_mode(const Node& node) {
  const std::string_view name = node.target().name();
  return name.ends_with("._enter_autocast") || name.ends_with("._exit_autocast") ||
         node.calls("torch._C._set_grad_enabled");
}

bool writes(const Node& node) {
  if (is_mode(node)) return false;
  return node.target().name().ends_with("_") || node.calls("operator.setitem") ||
         !aten::operator_record(node).writes.empty();
}

bool computes(const Node& node) {
  return !node.calls("operator.getitem") && aten::operator_record(node).work != aten::Work::none;
}

// Where grad mode or autocast is not what it is where the graph starts: pieces do not end there.
class Modes {
 public:
  void pass(const Node& node) {
    const std::string_view name = node.target().name();
    if (name.ends_with("._enter_autocast")) ++autocast_;
    if (name.ends_with("._exit_autocast")) --autocast_;
    if (!node.calls("torch._C._set_grad_enabled") || node.args().empty()) return;
    if (const bool* enabled = node.args()[0].get_if<bool>()) grad_mode_ = *enabled;
  }
  bool are_others() const { return grad_mode_ != at_start_ || autocast_ != 0; }

 private:
  bool at_start_ = c10::GradMode::is_enabled();
  bool grad_mode_ = at_start_;
  int autocast_ = 0;
};

struct Unit {
  std::vector<const Node*> nodes;
  bool is_fixed = true;
};

std::size_t count_computing(const std::vector<const Node*>& nodes) {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes, [](const Node* node) { return computes(*node); }));
}

}  // namespace

FixedParts::FixedParts(std::shared_ptr<const graph::Graph> graph)
    : graph_(std::move(graph)), runner_(*graph_) {}

void FixedParts::observe(std::span<c10::IValue> inputs, Outputs& outputs) {
  const auto placeholders = graph_->placeholders();
  std::unordered_set<const Node*> varying;
  std::unordered_map<const Node*, c10::IValue> numbers;
  const auto note = [&](const Node& node, const Value& value) {
    if (value.is_none() || is_mode(node)) return;
    if (value.is_number()) {
      numbers.emplace(&node, value.leaf);
    } else if (!has_same_sizes(value, node.meta.value)) {
      varying.insert(&node);
    }
  };
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    note(*placeholders[i], aten::unpack_value(inputs[i]));
  }
  runner_.call(inputs, outputs, [&](const Node& node, const Value& value) {
    if (node.is_call()) note(node, value);
  });
  const std::scoped_lock lock(mutex_);
  varying_.insert(varying.begin(), varying.end());
  for (const auto& [node, number] : numbers) {
    const auto [known, is_new] = numbers_.emplace(node, number);
    if (!is_new && known->second != number) varying_.insert(node);
  }
  ++observed_;
}

bool FixedParts::is_known() const {
  const std::scoped_lock lock(mutex_);
  return observed_ >= kObserved;
}

std::shared_ptr<const CompiledGraph> FixedParts::make(const CompileRequest& request,
                                                      Compiler compile) const {
  const graph::Graph& graph = *graph_;
  const auto varying = [&] {
    const std::scoped_lock lock(mutex_);
    return varying_;
  }();
  const auto written = std::ranges::find_if(
      graph.nodes(), [](const Node& node) { return node.is_call() && writes(node); });
  if (!gives_nodes(graph) || written != graph.nodes().end()) {
    observe::log(observe::Component::dynamic, observe::Level::info, [&] {
      return "nothing is compiled for all sizes: the graph " +
             (written == graph.nodes().end() ? "returns constants"
                                             : "writes to tensors, in " + written->name());
    });
    return nullptr;
  }
  const auto is_fixed = [&](const Node& node) {
    bool fixed = !varying.contains(&node) && !is_python_call(node);
    node.for_each_input([&](const Node& input) { fixed = fixed && !varying.contains(&input); });
    return fixed;
  };
  std::vector<Unit> units;
  std::unordered_set<const Node*> taken;
  Modes modes;
  for (const Node& node : graph.nodes()) {
    if (!node.is_call() || taken.contains(&node)) continue;
    if (units.empty() || !modes.are_others()) units.emplace_back();
    Unit& unit = units.back();
    const std::size_t first = unit.nodes.size();
    append_with_items(node, unit.nodes);
    for (std::size_t i = first; i < unit.nodes.size(); ++i) {
      taken.insert(unit.nodes[i]);
      unit.is_fixed = unit.is_fixed && is_fixed(*unit.nodes[i]);
    }
    modes.pass(node);
  }

  std::vector<Unit> parts;
  for (Unit& unit : units) {
    if (parts.empty() || parts.back().is_fixed != unit.is_fixed) {
      parts.push_back(std::move(unit));
    } else {
      auto& nodes = parts.back().nodes;
      nodes.insert(nodes.end(), unit.nodes.begin(), unit.nodes.end());
    }
  }
  std::vector<Piece> pieces;
  std::size_t compiled = 0;
  std::size_t all = 0;
  for (const Unit& part : parts) {
    const std::size_t count = count_computing(part.nodes);
    const bool is_compiled = part.is_fixed && count >= kSmallPart;
    const Piece::Kind kind = is_compiled ? Piece::Kind::compiled : Piece::Kind::as_it_is;
    all += count;
    if (is_compiled) compiled += count;
    if (pieces.empty() || pieces.back().kind != kind) pieces.push_back({{}, kind});
    auto& nodes = pieces.back().nodes;
    nodes.insert(nodes.end(), part.nodes.begin(), part.nodes.end());
  }
  const bool is_worth_it = 2 * compiled >= all && keep_modes(graph, pieces);
  observe::log(observe::Component::dynamic, observe::Level::info, [&] {
    return std::to_string(compiled) + " of " + std::to_string(all) +
           " operators do not depend on sizes" +
           (is_worth_it ? ": they are compiled, for all sizes" : "");
  });
  if (!is_worth_it) return nullptr;
  CompileRequest whole = request;
  whole.graph = graph_;
  return run_in_pieces(whole, std::move(compile), pieces);
}

}  // namespace assay::capture
