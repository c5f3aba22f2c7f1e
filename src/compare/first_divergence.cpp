#include "compare/first_divergence.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "assay/error.h"
#include "aten/operator_record.h"
#include "aten/rng_state.h"
#include "aten/runner.h"
#include "compare/fp64.h"
#include "compare/models.h"
#include "compare/piece.h"
#include "compare/restore_modes.h"
#include "compare/scaling.h"
#include "compare/tensor_trees.h"
#include "graph/print.h"

namespace assay::compare {

namespace {

using at::Tensor;
using aten::Value;
using graph::Graph;
using graph::Node;
using graph::Op;
using Nodes = std::vector<const Node*>;

bool holds_tensors(const Value& value) {
  bool found = false;
  for_each_tensor(value, [&](const Tensor&) { found = true; });
  return found;
}

// A suspect, whatever it is: which values it wants for a node, and what it makes of them.
class Suspect {
 public:
  Suspect() = default;
  virtual ~Suspect() = default;
  Suspect(const Suspect&) = delete;
  Suspect& operator=(const Suspect&) = delete;
  /// Prepares for a node; false if the suspect does not have it.
  virtual bool take(const Node& node) = 0;
  virtual const Nodes& inputs() const = 0;
  virtual Value run(const Node& node, std::vector<Value> inputs) = 0;
};

class SuspectGraph : public Suspect {
 public:
  SuspectGraph(const Graph& reference, const Graph& suspect) : nodes_(reference, suspect) {}
  bool take(const Node& node) override {
    piece_ = nodes_.piece_for(node);
    return piece_.graph != nullptr;
  }
  const Nodes& inputs() const override { return piece_.inputs; }
  Value run(const Node&, std::vector<Value> inputs) override {
    return aten::GraphRunner(*piece_.graph).run(std::move(inputs));
  }

 private:
  Correspondence nodes_;
  Piece piece_;
};

class SuspectKernel : public Suspect {
 public:
  explicit SuspectKernel(const NodeKernel& kernel) : kernel_(kernel) {}
  bool take(const Node& node) override {
    inputs_.clear();
    node.for_each_input([&](const Node& input) {
      if (std::ranges::find(inputs_, &input) == inputs_.end()) inputs_.push_back(&input);
    });
    return node.is_call();
  }
  const Nodes& inputs() const override { return inputs_; }
  Value run(const Node& node, std::vector<Value> inputs) override {
    return kernel_(node, std::move(inputs));
  }

 private:
  const NodeKernel& kernel_;
  Nodes inputs_;
};

class Search {
 public:
  Search(const Graph& graph, Suspect& suspect, const DivergenceOptions& options)
      : graph_(graph), suspect_(suspect), options_(options) {}

  std::optional<Divergence> run(const std::vector<Value>& inputs) {
    take_inputs(inputs);
    for (const Node& node : graph_.nodes()) {
      if (node.op() == Op::placeholder || node.op() == Op::output) continue;
      if (auto found = step(node)) return found;
    }
    return std::nullopt;
  }

 private:
  void take_inputs(const std::vector<Value>& inputs) {
    const std::vector<Value> copies = clone_inputs_retaining_gradness(inputs);
    const auto placeholders = graph_.placeholders();
    if (copies.size() != placeholders.size()) {
      throw UserError("the graph takes " + std::to_string(placeholders.size()) + " inputs, " +
                      std::to_string(copies.size()) + " given");
    }
    for (std::size_t i = 0; i < copies.size(); ++i) {
      values_[placeholders[i]] =
          map_tensors(copies[i], [](const Tensor& tensor) { return tensor.detach(); });
    }
  }

  std::vector<Value> values_of(const Nodes& nodes) const {
    std::vector<Value> found;
    for (const Node* node : nodes) {
      const auto value = values_.find(node);
      if (value == values_.end()) {
        throw UserError("the suspect graph reads '" + node->name() +
                        "' before the reference computes it");
      }
      found.push_back(value->second);
    }
    return found;
  }

  at::Tensor generator_state() {
    const std::lock_guard lock(generator_.mutex());
    return generator_.get_state();
  }

  void set_generator_state(const Tensor& state) {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(state);
  }

  // Runs the node for both, and compares. What the reference computes stays in `values_`.
  std::optional<Divergence> step(const Node& node) {
    const Piece piece = cut_out(graph_, {&node}, node);
    const bool is_known = suspect_.take(node);
    const std::size_t own = piece.inputs.size();
    Nodes read = piece.inputs;
    if (is_known) read.insert(read.end(), suspect_.inputs().begin(), suspect_.inputs().end());
    const std::vector<Value> live = values_of(read);
    // As it was before the call: the call may change its arguments.
    const std::vector<Value> before = clone_inputs_retaining_gradness(live);
    const Tensor random = generator_state();
    const aten::GraphRunner runner(*piece.graph);
    // Random attributes are drawn while planning, one after the other.
    if (node.op() != Op::get_attr) set_generator_state(random);
    const auto first = [own](const std::vector<Value>& all) {
      return std::vector<Value>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(own));
    };
    const Value value = runner.run(first(live));
    values_[&node] = value;
    const Tensor random_after = generator_state();
    // A call without tensors changes a mode, and may do so only once.
    const bool has_tensors = holds_tensors(value) || std::ranges::any_of(live, [](const Value& v) {
                               return holds_tensors(v);
                             });
    if (!is_known || !has_tensors || aten::operator_record(node).is_uninitialized)
      return std::nullopt;

    std::vector<Value> copies = clone_inputs_retaining_gradness(before);
    copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(own));
    set_generator_state(random);
    const Value other = suspect_.run(node, copies);
    const Call call{node, piece, first(before), random};
    Comparison found = compare(call, value, other);
    if (found.same) found = compare_arguments(read, live, copies);
    if (!found.same && !agrees_with_itself(call, runner, value)) found = {};
    set_generator_state(random_after);
    if (found.same) return std::nullopt;
    return Divergence{node.name(), graph::print_call(node), node.meta.stack, node.meta.text_offset,
                      std::move(found)};
  }

  // One call of the reference, to be made again.
  struct Call {
    const Node& node;
    const Piece& piece;
    std::vector<Value> inputs;  ///< As they were before the first time.
    Tensor random;
  };

  Comparison compare(const Call& call, const Value& value, const Value& other) {
    const std::vector<double> scales = options_.relative ? scales_of(value) : std::vector<double>();
    const Value left = scaled(value, scales);
    const Value right = scaled(other, scales);
    Comparison found = same(left, right, nullptr, options_.same);
    const bool is_about_numbers =
        found.kind == Comparison::Kind::values || found.kind == Comparison::Kind::nan;
    if (found.same || !options_.use_fp64 || !is_about_numbers) return found;
    const std::optional<Value> fp64 = in_fp64(call);
    if (!fp64) return found;
    const Value judge = scaled(*fp64, scales);
    Comparison judged = same(left, right, &judge, options_.same);
    // A reference that cannot be used leaves it at what was found without.
    return judged.kind == Comparison::Kind::reference && !judged.same ? found : judged;
  }

  std::optional<Value> in_fp64(const Call& call) {
    try {
      const auto graph = cast_graph_to_fp64(*call.piece.graph);
      const aten::GraphRunner runner(*graph);
      set_generator_state(call.random);
      return runner.run(cast_inputs_to_fp64(call.inputs));
    } catch (const InternalError&) {
      throw;
    } catch (const std::exception&) {
      return std::nullopt;  // not every operator exists in float64: then eager alone is the judge
    }
  }

  // Did the suspect leave the same in the arguments as the reference?
  Comparison compare_arguments(const Nodes& read, const std::vector<Value>& live,
                               const std::vector<Value>& copies) const {
    const std::size_t own = live.size() - copies.size();
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const std::vector<double> scales =
          options_.relative ? scales_of(live[own + i]) : std::vector<double>();
      Comparison found =
          same(scaled(live[own + i], scales), scaled(copies[i], scales), nullptr, options_.same);
      if (found.same) continue;
      found.where = "input['" + read[own + i]->name() + "']" + found.where;
      return found;
    }
    return {};
  }

  // A call whose result is not determined by its inputs cannot be judged.
  bool agrees_with_itself(const Call& call, const aten::GraphRunner& runner, const Value& value) {
    set_generator_state(call.random);
    const Value again = runner.run(clone_inputs_retaining_gradness(call.inputs));
    return compare(call, value, again).same;
  }

  const Graph& graph_;
  Suspect& suspect_;
  const DivergenceOptions& options_;
  at::Generator generator_ = at::detail::getDefaultCPUGenerator();
  std::unordered_map<const Node*, Value> values_;
};

std::optional<Divergence> search(const Graph& graph, Suspect& suspect,
                                 const std::vector<Value>& inputs,
                                 const DivergenceOptions& options) {
  const RestoreModesScope modes;
  const aten::RestoreGeneratorScope generator;
  return Search(graph, suspect, options).run(inputs);
}

}  // namespace

std::optional<Divergence> first_divergence(const Graph& reference, const Graph& suspect,
                                           const std::vector<Value>& inputs,
                                           const DivergenceOptions& options) {
  SuspectGraph other(reference, suspect);
  return search(reference, other, inputs, options);
}

std::optional<Divergence> first_divergence(const Graph& graph, const NodeKernel& suspect,
                                           const std::vector<Value>& inputs,
                                           const DivergenceOptions& options) {
  SuspectKernel other(suspect);
  return search(graph, other, inputs, options);
}

}  // namespace assay::compare
