#include "capture/pieces.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "assay/backend.h"
#include "graph/copy_nodes.h"
#include "guards/guards.h"

namespace assay::capture {

namespace {

using graph::Argument;
using graph::Node;
using graph::Op;

// Pairs of inputs that are one tensor: what is compiled takes them for one.
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

Pairs same_tensors(std::span<const c10::IValue> inputs) {
  Pairs pairs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t earlier = 0; earlier < i; ++earlier) {
      if (inputs[i].isTensor() && inputs[i].is(inputs[earlier])) pairs.emplace_back(earlier, i);
    }
  }
  return pairs;
}

class PiecewiseGraph : public CompiledGraph {
 public:
  PiecewiseGraph(const CompileRequest& request, Compiler compile, const std::vector<Piece>& pieces)
      : request_(request), compile_(std::move(compile)) {
    request_.inputs.clear();  // each piece is compiled for its own
    const graph::Graph& graph = *request.graph;
    for (const Node* placeholder : graph.placeholders()) slot_of(*placeholder);
    std::unordered_map<const Node*, std::size_t> made_in;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (const Node* node : pieces[i].nodes) made_in.emplace(node, i);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) add_piece(pieces[i], i, made_in);
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
    for (const auto& part : parts_) {
      arguments.clear();
      made.clear();
      for (const Input& input : part->inputs) {
        arguments.push_back(input.is_last ? std::move(slots[input.slot]) : slots[input.slot]);
      }
      compiled(*part, arguments)->call({arguments.data(), arguments.size()}, made);
      for (std::size_t i = 0; i < made.size(); ++i) slots[part->outputs[i]] = std::move(made[i]);
    }
    for (const std::size_t slot : results_) outputs.push_back(slots[slot]);
  }

 private:
  using CompiledPointer = std::shared_ptr<const CompiledGraph>;

  struct Input {
    std::size_t slot;
    bool is_last = false;  // nothing reads it later
  };
  // What was compiled for one kind of inputs.
  struct Variant {
    std::vector<guards::InputGuard> inputs;
    Pairs same;
    CompiledPointer compiled;

    bool fits(std::span<const c10::IValue> given) const {
      const auto holds = [](const guards::InputGuard& guard, const c10::IValue& input) {
        return guard.holds(input);
      };
      return std::ranges::equal(inputs, given, holds) &&
             std::ranges::all_of(
                 same, [&](const auto& pair) { return given[pair.first].is(given[pair.second]); });
    }
  };
  struct Part {
    std::shared_ptr<const graph::Graph> graph;
    Piece::Kind kind = Piece::Kind::compiled;
    std::vector<Input> inputs;
    std::vector<std::size_t> outputs;
    mutable std::mutex mutex;
    mutable CompiledPointer as_it_is;  // null: it has not run so
    mutable std::vector<Variant> variants;
  };
  // Of a part whose inputs are others in turns; more run as they are.
  static constexpr std::size_t kMostVariants = 4;

  std::size_t slot_of(const Node& node) {
    return slots_.emplace(&node, slots_.size()).first->second;
  }

  void add_piece(const Piece& piece, std::size_t number,
                 const std::unordered_map<const Node*, std::size_t>& made_in) {
    auto part = std::make_unique<Part>();
    part->kind = piece.kind;
    auto made = std::make_shared<graph::Graph>(request_.graph->name());
    made->symbols() = request_.graph->symbols();
    graph::NodeCopier copier(*request_.graph, *made);
    std::vector<const Node*> attributes;
    const auto is_here = [&](const Node& node) {
      const auto found = made_in.find(&node);
      return found != made_in.end() && found->second == number;
    };
    for (const Node* node : piece.nodes) {
      node->for_each_input([&](const Node& input) {
        if (is_here(input) || copier.has(input)) return;
        if (input.op() == Op::get_attr) {
          if (std::ranges::find(attributes, &input) == attributes.end())
            attributes.push_back(&input);
          return;
        }
        part->inputs.push_back({slot_of(input)});
        copier.copy_as_input(input);
      });
    }
    for (const Node* attribute : attributes) copier.copy(*attribute);
    for (const Node* node : piece.nodes) copier.copy(*node);
    std::vector<Argument> results;
    for (const Node* node : piece.nodes) {
      const bool leaves =
          std::ranges::any_of(node->users(), [&](const Node* user) { return !is_here(*user); });
      if (!leaves) continue;
      part->outputs.push_back(slot_of(*node));
      results.push_back(copier.map().at(node));
    }
    made->set_output(graph::Tuple{std::move(results)});
    part->graph = std::move(made);
    parts_.push_back(std::move(part));
  }

  void release_at_last_use() {
    std::unordered_set<std::size_t> needed(results_.begin(), results_.end());
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
      for (Input& input : (*part)->inputs) input.is_last = needed.insert(input.slot).second;
    }
  }

  // Not locked while compiling: a backend may run Python. Two threads may compile the same.
  CompiledPointer compiled(const Part& part, std::span<const c10::IValue> inputs) const {
    bool may_compile = part.kind == Piece::Kind::compiled;
    {
      const std::scoped_lock lock(part.mutex);
      for (const Variant& variant : part.variants) {
        if (variant.fits(inputs)) return variant.compiled;
      }
      may_compile = may_compile && part.variants.size() < kMostVariants;
      if (!may_compile && part.as_it_is != nullptr) return part.as_it_is;
    }
    if (!may_compile) {
      CompiledPointer made = plan_as_it_is(part, inputs);
      const std::scoped_lock lock(part.mutex);
      return part.as_it_is = std::move(made);
    }
    Variant variant;
    for (const c10::IValue& input : inputs) variant.inputs.emplace_back(input);
    variant.same = same_tensors(inputs);
    variant.compiled = compile_part(part, inputs);
    const std::scoped_lock lock(part.mutex);
    part.variants.push_back(variant);
    return variant.compiled;
  }

  CompiledPointer plan_as_it_is(const Part& part, std::span<const c10::IValue> inputs) const {
    CompileRequest request = request_for(part, inputs);
    request.options.clear();
    return find_backend("eager")->compile(request);
  }

  CompiledPointer compile_part(const Part& part, std::span<const c10::IValue> inputs) const {
    std::optional<pybind11::gil_scoped_release> unlocked;
    if (PyGILState_Check() != 0) unlocked.emplace();
    return compile_(request_for(part, inputs));
  }

  CompileRequest request_for(const Part& part, std::span<const c10::IValue> inputs) const {
    CompileRequest request = request_;
    request.graph = part.graph;
    request.inputs.assign(inputs.begin(), inputs.end());
    return request;
  }

  CompileRequest request_;
  Compiler compile_;
  std::unordered_map<const Node*, std::size_t> slots_;  // those of the inputs come first
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::size_t> results_;
};

}  // namespace

bool is_python_call(const Node& node) {
  return node.op() == Op::call_function &&
         node.target().name().starts_with("torch.ops.assay_python.");
}

void append_with_items(const Node& node, std::vector<const Node*>& nodes) {
  nodes.push_back(&node);
  if (node.meta.value.tensor() != nullptr) return;
  for (const Node* user : node.users()) {
    if (user->calls("operator.getitem") && user->args()[0].node() == &node) {
      append_with_items(*user, nodes);
    }
  }
}

bool keep_modes(const graph::Graph& graph, const std::vector<Piece>& pieces) {
  const bool at_start = c10::GradMode::is_enabled();
  bool grad_mode = at_start;
  int autocast = 0;
  for (const Node& node : graph.nodes()) {
    const std::string_view name = node.target().name();
    const bool is_autocast =
        name.ends_with("._enter_autocast") || name.ends_with("._exit_autocast");
    if (!is_autocast && (name.find("nesting") != name.npos || name.find("_enter_") != name.npos)) {
      return false;
    }
  }
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    for (const Node* node : pieces[i].nodes) {
      const std::string_view name = node->target().name();
      if (node->calls("torch._C._set_grad_enabled")) {
        const bool* enabled = node->args().empty() ? nullptr : node->args()[0].get_if<bool>();
        if (enabled == nullptr) return false;
        grad_mode = *enabled;
      } else if (name.ends_with("._enter_autocast")) {
        ++autocast;
      } else if (name.ends_with("._exit_autocast")) {
        --autocast;
      }
    }
    if (grad_mode != at_start || autocast != 0) return false;
  }
  return true;
}

bool gives_nodes(const graph::Graph& graph) {
  return std::ranges::all_of(graph.output()->args()[0].items(), [](const Argument& result) {
    return result.node() != nullptr && result.node()->op() != Op::get_attr;
  });
}

std::shared_ptr<const CompiledGraph> run_in_pieces(const CompileRequest& request, Compiler compile,
                                                   const std::vector<Piece>& pieces) {
  return std::make_shared<const PiecewiseGraph>(request, std::move(compile), pieces);
}

}  // namespace assay::capture
