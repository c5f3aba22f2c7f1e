/// \file The runner's plan: a graph turned into a flat list of steps over numbered slots.
/// Internal to aten/runner.cpp and aten/plan.cpp.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "assay/error.h"
#include "aten/match.h"
#include "aten/resolve.h"
#include "aten/runner.h"
#include "aten/unboxed_call.h"
#include "aten/value.h"
#include "graph/graph.h"

namespace assay::aten {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = UINT32_MAX;

/// A node's argument with its nodes replaced by slots.
struct Template {
  Value constant;  ///< Used if `slot` and `items` are empty.
  Slot slot = kNoSlot;
  std::vector<Template> items;  ///< Of the container whose kind (and keys) `constant` has.
  bool is_container = false;
  bool is_constant() const { return slot == kNoSlot && !is_container; }
};

/// One argument of an operator call.
struct OperatorArgument {
  enum class Kind : std::uint8_t { constant, tensor_slot, other };
  Kind kind = Kind::constant;
  bool is_last_use = false;  ///< The slot's value may be moved out.
  Slot slot = kNoSlot;
  c10::IValue constant;  ///< Already converted to the schema's type.
  const c10::Argument* schema = nullptr;
  std::size_t position = 0;  ///< Of `schema` among the operator's arguments.
  Template value;            ///< For `other`: filled in at run time, then converted.
};

/// What matters of a value when an overload is chosen.
enum class ValueKind : std::uint8_t { tensor, none, boolean, integer, floating, container, other };

/// A Python-level call whose overload was chosen for values of certain kinds: later runs with
/// values of the same kinds skip the choice.
struct ChosenOverload {
  c10::OperatorHandle op;
  std::vector<OperatorArgument> operands;
  std::vector<std::pair<Slot, ValueKind>> kinds;  ///< What each slot held.
};

/// A choice that is made once, by whichever thread comes first.
class OverloadMemory {
 public:
  OverloadMemory() = default;
  OverloadMemory(OverloadMemory&& other) noexcept : chosen_(other.chosen_.exchange(nullptr)) {}
  ~OverloadMemory() { delete chosen_.load(); }

  const ChosenOverload* get() const { return chosen_.load(std::memory_order_acquire); }
  void offer(std::unique_ptr<const ChosenOverload> choice) const {
    const ChosenOverload* none = nullptr;
    if (chosen_.compare_exchange_strong(none, choice.get(), std::memory_order_acq_rel)) {
      static_cast<void>(choice.release());  // owned by chosen_ now
    }
  }

 private:
  mutable std::atomic<const ChosenOverload*> chosen_ = nullptr;
};

struct Step {
  enum class Kind : std::uint8_t { operator_call, python_call, item, attribute, subgraph_call };
  Kind kind = Kind::operator_call;
  const graph::Node* node = nullptr;
  Slot result = kNoSlot;
  std::vector<Slot> released;  ///< Slots no later step reads.

  // operator_call
  std::optional<c10::OperatorHandle> op;
  std::vector<OperatorArgument> operands;
  UnboxedOperator unboxed;
  at::Tensor float_constant;  ///< Of the second operand; see aten/unboxed_call.h.
  std::size_t result_count = 1;
  /// If every user takes one item, the items' slots (kNoSlot where unused); the tuple is not built.
  std::vector<Slot> item_results;

  // python_call; also where an operator call needs its arguments as written
  Resolution resolution;
  OverloadMemory overload;
  std::vector<Template> args;
  std::vector<std::pair<std::string, Template>> kwargs;

  // item: `args[0]` at a constant index
  std::int64_t index = 0;

  // attribute, subgraph_call
  Value attribute;
  std::shared_ptr<const GraphRunner> subgraph;
};

/// One leaf of the graph's output.
struct OutputLeaf {
  Slot slot = kNoSlot;
  bool is_last_mention = false;  ///< The slot's value may be moved out.
  c10::IValue constant;          ///< Packed; if there is no slot.
};

struct RunPlan {
  const graph::Graph* graph = nullptr;
  const graph::python::Source* source = nullptr;
  std::vector<const graph::Node*> placeholders;             ///< Those that are not bound.
  std::vector<Slot> input_slots;                            ///< One per entry of `placeholders`.
  std::vector<std::pair<const graph::Node*, Value>> bound;  ///< The other placeholders.
  std::vector<Step> steps;
  Template output;
  std::vector<OutputLeaf> output_leaves;
  /// Slots that no step empties: outputs, and inputs that nobody reads.
  std::vector<Slot> kept_slots;
  std::size_t slot_count = 0;
  std::unordered_map<const graph::Graph*, std::shared_ptr<const GraphRunner>> subgraphs;
};

/// Builds the plan, with the last placeholders bound to `bound`; throws as GraphRunner's
/// constructor.
std::unique_ptr<RunPlan> make_plan(const graph::Graph& graph, const graph::python::Source* source,
                                   std::span<const c10::IValue> bound);

/// The slots and the operators' stack of one run; kept by the runner for the next one.
struct RunFrame {
  explicit RunFrame(const RunPlan& plan) : slots(plan.slot_count) { stack.reserve(16); }
  std::vector<Value> slots;
  std::vector<c10::IValue> stack;
};

/// `error` with the node's name and, if known, its place in the file.
UserError located_error(const RunPlan& plan, const graph::Node& node, const UserError& error);

/// One argument of a call of `op`, from the template of what the user passed. Nothing if it is a
/// constant that does not fit.
std::optional<OperatorArgument> make_operand(const c10::OperatorHandle& op, std::size_t position,
                                             Template value);

/// The operands of the call that `match` chose, for runs with values of the kinds now in `slots`;
/// nullptr if the choice depends on more than kinds (the contents of lists).
std::unique_ptr<const ChosenOverload> remember_overload(const Step& step, const Match& match,
                                                        const std::vector<Value>& slots);

ValueKind kind_of(const Value& value);

/// Fills in a template from the slots.
Value instantiate(const Template& value, const std::vector<Value>& slots);

/// A constant argument of a graph as a run-time value.
Value constant_value(const graph::Argument& argument);

/// True for `torch.ops.higher_order.*` that the runner does itself; see aten/higher_order.cpp.
bool is_higher_order(const graph::Target& target);
Value run_higher_order(const graph::Target& target, const Arguments& arguments,
                       const RunPlan& plan);

/// Why an attribute that is neither a tensor nor a subgraph cannot be run.
UserError unusable_attribute(const graph::Attribute& attribute);

/// The tensor of an attribute.
Value attribute_value(const graph::TensorAttribute& attribute);

}  // namespace assay::aten
