#include "capture/piecewise_graph.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "assay/backend.h"
#include "graph/copy_nodes.h"

namespace assay::capture {

namespace {

using graph::Argument;
using graph::Node;
using graph::Op;

bool is_python_call(const Node& node) {
  return node.op() == Op::call_function &&
         node.target().name().starts_with("torch.ops.assay_python.");
}

bool contains(const NodeIds& ids, const Node& node) {
  return std::ranges::find(ids, node.id()) != ids.end();
}

// A node and, if its result is a list or tuple, the nodes that take it apart: between pieces there
// are tensors only.
void append_with_items(const Node& node, std::vector<const Node*>& nodes) {
  nodes.push_back(&node);
  if (node.meta.value.tensor() != nullptr) return;
  for (const Node* user : node.users()) {
    if (user->calls("operator.getitem") && user->args()[0].node() == &node) {
      append_with_items(*user, nodes);
    }
  }
}

// Neighboring nodes. A call of Python is a piece of its own, and one ends behind each node of
// `last`.
struct PieceNodes {
  std::vector<const Node*> nodes;
  bool is_python = false;
};

std::vector<PieceNodes> cut(const graph::Graph& graph, const NodeIds& last) {
  std::vector<PieceNodes> pieces;
  std::unordered_set<const Node*> taken;
  PieceNodes current;
  const auto close = [&] {
    if (!current.nodes.empty()) pieces.push_back(std::exchange(current, {}));
  };
  for (const Node& node : graph.nodes()) {
    if (!node.is_call() || taken.contains(&node)) continue;
    std::vector<const Node*> together;
    append_with_items(node, together);
    taken.insert(together.begin(), together.end());
    const bool is_python = is_python_call(node);
    if (is_python) close();
    current.is_python = is_python;
    current.nodes.insert(current.nodes.end(), together.begin(), together.end());
    if (is_python ||
        std::ranges::any_of(together, [&](const Node* made) { return contains(last, *made); })) {
      close();
    }
  }
  close();
  return pieces;
}

// Between pieces, grad mode and autocast are what they are where the graph starts: pieces know of
// no others.
bool keeps_modes(const graph::Graph& graph, const NodeIds& last) {
  const bool at_start = c10::GradMode::is_enabled();
  bool grad_mode = at_start;
  int autocast = 0;
  for (const Node& node : graph.nodes()) {
    const std::string_view name = node.target().name();
    if (node.calls("torch._C._set_grad_enabled")) {
      const bool* enabled = node.args().empty() ? nullptr : node.args()[0].get_if<bool>();
      if (enabled == nullptr) return false;
      grad_mode = *enabled;
    } else if (name.ends_with("._enter_autocast")) {
      ++autocast;
    } else if (name.ends_with("._exit_autocast")) {
      --autocast;
    } else if (name.find("nesting") != name.npos || name.find("_enter_") != name.npos) {
      return false;
    }
    const bool is_between = is_python_call(node) || contains(last, node);
    if (is_between && (grad_mode != at_start || autocast != 0)) return false;
  }
  return true;
}

class PiecewiseGraph : public CompiledGraph {
 public:
  PiecewiseGraph(const CompileRequest& request, Compiler compile, const NodeIds& last)
      : request_(request), compile_(std::move(compile)) {
    request_.inputs.clear();  // each piece is compiled for its own
    const graph::Graph& graph = *request.graph;
    for (const Node* placeholder : graph.placeholders()) slot_of(*placeholder);
    const std::vector<PieceNodes> cuts = cut(graph, last);
    std::unordered_map<const Node*, std::size_t> made_in;
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      for (const Node* node : cuts[i].nodes) made_in.emplace(node, i);
    }
    for (std::size_t i = 0; i < cuts.size(); ++i) add_piece(cuts[i], i, made_in);
    for (const Argument& result : graph.output()->args()[0].items()) {
      results_.push_back(slot_of(*result.node()));
    }
    release_at_last_use();
  }

  void call(std::span<c10::IValue> inputs, Outputs& outputs) const override {
    std::vector<c10::IValue> slots(slots_.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) slots[i] = std::move(inputs[i]);
    c10::SmallVector<c10::IValue, 16> arguments;
    c10::SmallVector<c10::IValue, 16> made;
    for (const auto& piece : pieces_) {
      arguments.clear();
      made.clear();
      for (const Input& input : piece->inputs) {
        arguments.push_back(input.is_last ? std::move(slots[input.slot]) : slots[input.slot]);
      }
      compiled(*piece, arguments)->call({arguments.data(), arguments.size()}, made);
      for (std::size_t i = 0; i < made.size(); ++i) slots[piece->outputs[i]] = std::move(made[i]);
    }
    for (const std::size_t slot : results_) outputs.push_back(slots[slot]);
  }

 private:
  struct Input {
    std::size_t slot;
    bool is_last = false;  // nothing reads it later
  };
  struct Piece {
    std::shared_ptr<const graph::Graph> graph;
    bool is_python = false;
    std::vector<Input> inputs;
    std::vector<std::size_t> outputs;
    mutable std::mutex mutex;
    mutable std::shared_ptr<const CompiledGraph> compiled;  // null: it has not run yet
  };

  std::size_t slot_of(const Node& node) {
    return slots_.emplace(&node, slots_.size()).first->second;
  }

  void add_piece(const PieceNodes& cut, std::size_t number,
                 const std::unordered_map<const Node*, std::size_t>& made_in) {
    auto piece = std::make_unique<Piece>();
    piece->is_python = cut.is_python;
    auto made = std::make_shared<graph::Graph>(request_.graph->name());
    made->symbols() = request_.graph->symbols();
    graph::NodeCopier copier(*request_.graph, *made);
    std::vector<const Node*> attributes;
    const auto is_here = [&](const Node& node) {
      const auto found = made_in.find(&node);
      return found != made_in.end() && found->second == number;
    };
    for (const Node* node : cut.nodes) {
      node->for_each_input([&](const Node& input) {
        if (is_here(input) || copier.has(input)) return;
        if (input.op() == Op::get_attr) {
          if (std::ranges::find(attributes, &input) == attributes.end())
            attributes.push_back(&input);
          return;
        }
        piece->inputs.push_back({slot_of(input)});
        copier.copy_as_input(input);
      });
    }
    for (const Node* attribute : attributes) copier.copy(*attribute);
    for (const Node* node : cut.nodes) copier.copy(*node);
    std::vector<Argument> results;
    for (const Node* node : cut.nodes) {
      const bool leaves =
          std::ranges::any_of(node->users(), [&](const Node* user) { return !is_here(*user); });
      if (!leaves) continue;
      piece->outputs.push_back(slot_of(*node));
      results.push_back(copier.map().at(node));
    }
    made->set_output(graph::Tuple{std::move(results)});
    piece->graph = std::move(made);
    pieces_.push_back(std::move(piece));
  }

  void release_at_last_use() {
    std::unordered_set<std::size_t> needed(results_.begin(), results_.end());
    for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
      for (Input& input : (*piece)->inputs) input.is_last = needed.insert(input.slot).second;
    }
  }

  std::shared_ptr<const CompiledGraph> compiled(const Piece& piece,
                                                std::span<const c10::IValue> inputs) const {
    {
      const std::scoped_lock lock(piece.mutex);
      if (piece.compiled != nullptr) return piece.compiled;
    }
    // Not locked: a backend may run Python. Two threads may compile the same.
    CompileRequest request = request_;
    request.graph = piece.graph;
    request.inputs.assign(inputs.begin(), inputs.end());
    std::shared_ptr<const CompiledGraph> made;
    if (piece.is_python) {
      request.options.clear();
      made = find_backend("eager")->compile(request);
    } else {
      std::optional<pybind11::gil_scoped_release> unlocked;
      if (PyGILState_Check() != 0) unlocked.emplace();
      made = compile_(request);
    }
    const std::scoped_lock lock(piece.mutex);
    piece.compiled = made;
    return made;
  }

  CompileRequest request_;
  Compiler compile_;
  std::unordered_map<const Node*, std::size_t> slots_;  // those of the inputs come first
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::vector<std::size_t> results_;
};

}  // namespace

std::shared_ptr<const CompiledGraph> make_piecewise(const CompileRequest& request, Compiler compile,
                                                    const NodeIds& last) {
  const graph::Graph& graph = *request.graph;
  const bool has_calls_of_python = std::ranges::any_of(graph.nodes(), is_python_call);
  const bool has_other_calls = std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return node.is_call() && !is_python_call(node) && !node.calls("operator.getitem");
  });
  // A call for its effect alone adds a hook to a tensor, which the piece before has used already.
  const bool has_effects = std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return is_python_call(node) && node.users().empty(); });
  const bool gives_nodes =
      std::ranges::all_of(graph.output()->args()[0].items(), [](const Argument& result) {
        return result.node() != nullptr && result.node()->op() != Op::get_attr;
      });
  if ((!has_calls_of_python && last.empty()) || !has_other_calls || has_effects || !gives_nodes ||
      !keeps_modes(graph, last)) {
    return nullptr;
  }
  return std::make_shared<const PiecewiseGraph>(request, std::move(compile), last);
}

}  // namespace assay::capture
