#include "kernels/inline_producers.h"

#include <algorithm>
#include <optional>

#include "assay/error.h"
#include "kernels/cost.h"
#include "kernels/index_map.h"
#include "kernels/loop_edit.h"
#include "kernels/program_uses.h"
#include "observe/observe.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_inline(
    {.name = "inline_producers",
     .room = "kernels",
     .description = "copies pointwise producers into their consumers"});

// Above this a kernel keeps growing the compile time and the registers, and gains nothing.
constexpr int kMostInstructions = 400;
// What may be computed again for several consumers, or for many reads of one element.
constexpr int kCheapArithmetic = 4;
constexpr int kCheapLoads = 2;

bool is_integral_division(const Instruction& instruction) {
  return (instruction.op == Op::div_floor || instruction.op == Op::div_trunc ||
          instruction.op == Op::remainder || instruction.op == Op::fmod) &&
         c10::isIntegralType(instruction.dtype, true);
}

// A kernel that stores one value at each point of its loops, and what else must hold for it to be
// computed elsewhere.
struct Producer {
  Kernel* kernel = nullptr;
  const Instruction* store = nullptr;
  bool has_checks = false;
  bool is_safe_anywhere = true;  ///< With zeros for loads it still does not trap.
};

std::optional<Producer> as_producer(Kernel& kernel) {
  if (kernel.passes.size() != 1 || !kernel.passes[0].inner.empty()) return std::nullopt;
  Producer producer{.kernel = &kernel};
  for (const Instruction& instruction : kernel.passes[0].body) {
    if (writes_memory(instruction.op)) {
      if (producer.store != nullptr || instruction.op != Op::store) return std::nullopt;
      producer.store = &instruction;
    }
    if (instruction.op == Op::check) producer.has_checks = true;
    if (instruction.op == Op::check || instruction.op == Op::load_indirect ||
        is_integral_division(instruction)) {
      producer.is_safe_anywhere = false;
    }
  }
  return producer.store == nullptr ? std::nullopt : std::optional(producer);
}

// Writes a consumer again, with the producer in place of the loads of its result.
class InlinedBody {
 public:
  InlinedBody(Kernel& consumer, const Producer& producer)
      : consumer_(consumer), producer_(producer) {}

  void run() {
    std::vector<ValueId> values;
    for (Pass& pass : consumer_.passes) {
      const Sizes loops = loops_of(consumer_, pass);
      std::vector<Instruction> old = std::move(pass.body);
      pass.body.clear();
      pass.body.reserve(old.size() + producer_.kernel->passes[0].body.size());
      body_ = &pass.body;
      copies_.clear();
      for (Instruction& instruction : old) {
        for (ValueId& operand : instruction.operands) {
          if (operand != kNoValue) operand = values[operand];
        }
        const bool is_replaced =
            instruction.op == Op::load && instruction.buffer == producer_.store->buffer;
        values.push_back(is_replaced ? replace(instruction, loops) : add(std::move(instruction)));
      }
    }
    add_nodes();
  }

 private:
  ValueId add(Instruction instruction) {
    body_->push_back(std::move(instruction));
    return next_++;
  }

  ValueId constant(double value, c10::ScalarType dtype) {
    Instruction made;
    made.op = Op::constant;
    made.dtype = dtype;
    made.constant = c10::isFloatingType(dtype) ? c10::Scalar(value)
                    : dtype == c10::ScalarType::Bool
                        ? c10::Scalar(value != 0)
                        : c10::Scalar(static_cast<std::int64_t>(value));
    return add(std::move(made));
  }

  ValueId unary_cast(ValueId value, c10::ScalarType dtype) {
    Instruction made;
    made.op = Op::cast;
    made.dtype = dtype;
    made.operands = {value};
    return add(std::move(made));
  }

  ValueId replace(const Instruction& load, const Sizes& loops) {
    InverseResult result =
        invert(producer_.store->index, producer_.kernel->outer, load.index, loops, load.conditions);
    internal_check(result.map.has_value(), "the loops have been split so that there is a map");
    const ValueId value = copy(result.map->variables, load.conditions);
    if (load.conditions.empty()) return value;
    return select(load, value);
  }

  // `value` where the load's conditions hold, else what the load gives.
  ValueId select(const Instruction& load, ValueId value) {
    Instruction condition;
    condition.op = Op::condition;
    condition.dtype = c10::ScalarType::Bool;
    condition.conditions = load.conditions;
    const ValueId holds = add(std::move(condition));
    const bool is_small = load.dtype == c10::ScalarType::Half ||
                          load.dtype == c10::ScalarType::BFloat16;  // only loaded, stored and cast
    const c10::ScalarType dtype = is_small ? c10::ScalarType::Float : load.dtype;
    ValueId otherwise = load.operands[0];
    if (is_small) {
      value = unary_cast(value, dtype);
      otherwise = unary_cast(otherwise, dtype);
    }
    Instruction where;
    where.op = Op::where;
    where.dtype = dtype;
    where.operands = {holds, value, otherwise};
    const ValueId selected = add(std::move(where));
    return is_small ? unary_cast(selected, load.dtype) : selected;
  }

  // The producer's value at a point; the same point is computed once per pass.
  ValueId copy(const std::vector<Index>& variables, const std::vector<Condition>& conditions) {
    for (const Copy& made : copies_) {
      if (std::ranges::equal(made.variables, variables, same_index) &&
          same_conditions(made.conditions, conditions)) {
        return made.value;
      }
    }
    std::vector<ValueId> values;
    ValueId stored = kNoValue;
    for (const Instruction& original : producer_.kernel->passes[0].body) {
      if (original.op == Op::store) {
        stored = values[original.operands[0]];
        values.push_back(kNoValue);
        continue;
      }
      Instruction made = original;
      for (ValueId& operand : made.operands) {
        if (operand != kNoValue) operand = values[operand];
      }
      made.index = substitute(made.index, variables);
      for (Condition& condition : made.conditions) {
        condition.index = substitute(condition.index, variables);
      }
      if (made.op == Op::load && !conditions.empty()) {
        if (made.conditions.empty()) made.operands = {constant(0, made.dtype)};
        made.conditions.insert(made.conditions.end(), conditions.begin(), conditions.end());
      }
      values.push_back(add(std::move(made)));
    }
    copies_.push_back({variables, conditions, stored});
    return stored;
  }

  void add_nodes() {
    std::vector<const graph::Node*> nodes = producer_.kernel->nodes;
    for (const graph::Node* node : consumer_.nodes) {
      if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
    }
    consumer_.nodes = std::move(nodes);
  }

  struct Copy {
    std::vector<Index> variables;
    std::vector<Condition> conditions;
    ValueId value;
  };
  Kernel& consumer_;
  const Producer& producer_;
  std::vector<Instruction>* body_ = nullptr;
  std::vector<Copy> copies_;
  ValueId next_ = 0;
};

class Inliner {
 public:
  Inliner(LoopProgram& program, StepContext& context) : program_(program), context_(context) {}

  void run() {
    find_uses();
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      auto* kernel = std::get_if<Kernel>(&program_.steps[step]);
      if (kernel != nullptr) try_inline(step, *kernel);
    }
    std::size_t step = 0;
    std::erase_if(program_.steps, [&](const Step&) { return is_gone_[step++]; });
  }

 private:
  // What inlining a producer everywhere means.
  struct Uses {
    int copies = 0;                 ///< Different points at which it is computed.
    std::int64_t most_rereads = 1;  ///< How often a consumer reads one element.
    int largest_consumer = 0;       ///< In instructions.
    bool covers = true;             ///< Every consumer reads all of it.
    bool is_conditional = false;
  };

  void find_uses() {
    is_output_ = output_buffers(program_);
    writers_.resize(program_.buffers.size(), 0);
    readers_.resize(program_.buffers.size());
    is_gone_.resize(program_.steps.size(), false);
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      const StepUses uses = uses_of(program_.steps[step]);
      for (BufferId buffer : uses.writes) ++writers_[buffer];
      for (BufferId buffer : uses.reads) readers_[buffer].push_back(step);
    }
    is_aliased_.resize(program_.buffers.size(), false);
    for (const Buffer& buffer : program_.buffers) {
      for (BufferId base : buffer.aliases) is_aliased_[base] = true;
    }
  }

  void try_inline(std::size_t step, Kernel& kernel) {
    const auto producer = as_producer(kernel);
    if (!producer) return;
    const BufferId buffer = producer->store->buffer;
    if (is_output_[buffer] || is_aliased_[buffer] || writers_[buffer] != 1 ||
        program_.buffers[buffer].kind != Buffer::Kind::intermediate || readers_[buffer].empty()) {
      return;
    }
    Uses uses;
    for (std::size_t reader : readers_[buffer]) {
      if (!can_inline(*producer, reader, uses)) return;
    }
    if (!is_worth_it(*producer, uses) || !context_.may_apply()) return;
    for (std::size_t reader : readers_[buffer]) inline_into(*producer, reader);
    const StepUses own = uses_of(program_.steps[step]);
    for (BufferId read : own.reads) {
      auto& readers = readers_[read];
      std::erase(readers, step);
      for (std::size_t reader : readers_[buffer]) {
        if (std::ranges::find(readers, reader) == readers.end()) readers.push_back(reader);
      }
      std::ranges::sort(readers);
    }
    is_gone_[step] = true;
  }

  bool can_inline(const Producer& producer, std::size_t reader, Uses& uses) const {
    const auto* consumer = std::get_if<Kernel>(&program_.steps[reader]);
    if (consumer == nullptr) return false;
    switch (needed_splits(producer, *consumer)) {
      case Splits::none:
        return add_uses(producer, *consumer, uses);
      case Splits::impossible:
        return false;
      case Splits::some:
        break;
    }
    Kernel copy = *consumer;
    return may_split(copy) && split_loops(producer, copy) && add_uses(producer, copy, uses);
  }

  bool add_uses(const Producer& producer, const Kernel& consumer, Uses& uses) const {
    int instructions = 0;
    for (const Pass& pass : consumer.passes) {
      const Sizes loops = loops_of(consumer, pass);
      std::vector<std::vector<Index>> seen;
      for (const Instruction& instruction : pass.body) {
        ++instructions;
        const bool is_access = reads_memory(instruction.op) || writes_memory(instruction.op);
        if (!is_access || instruction.buffer != producer.store->buffer) continue;
        if (instruction.op != Op::load || instruction.dtype != producer.store->dtype) return false;
        const auto map = invert(producer.store->index, producer.kernel->outer, instruction.index,
                                loops, instruction.conditions)
                             .map;
        internal_check(map.has_value(), "the loops have been split so that there is a map");
        uses.covers = uses.covers && map->covers;
        uses.is_conditional = uses.is_conditional || !instruction.conditions.empty();
        uses.most_rereads =
            std::max(uses.most_rereads, points(loops) / std::max<std::int64_t>(map->distinct, 1));
        const bool is_known = std::ranges::any_of(seen, [&](const std::vector<Index>& other) {
          return std::ranges::equal(other, map->variables, same_index);
        });
        if (is_known) continue;
        seen.push_back(map->variables);
        ++uses.copies;
      }
    }
    uses.largest_consumer = std::max(uses.largest_consumer, instructions);
    return true;
  }

  // A scan is along a loop, and serial stores are in the order of the loops.
  static bool may_split(const Kernel& kernel) {
    bool may = true;
    for_each_instruction(kernel, [&](const Instruction& instruction) {
      if (is_scan(instruction.op)) may = false;
    });
    return may;
  }

  static bool is_worth_it(const Producer& producer, const Uses& uses) {
    const RecomputeCost cost = recompute_cost(*producer.kernel);
    if (producer.has_checks && !uses.covers) return false;
    if (uses.is_conditional && !producer.is_safe_anywhere) return false;
    if (cost.instructions * uses.copies + uses.largest_consumer > kMostInstructions) return false;
    const bool is_once = uses.copies == 1 && uses.most_rereads <= 1;
    if (is_once) return true;
    if (producer.has_checks) return false;
    if (uses.most_rereads > 1) return cost.arithmetic <= 3 && cost.loads <= 1;
    // Loading the producer's inputs again costs no more than storing it once and loading it again.
    const bool saves_memory = uses.copies * cost.loads <= cost.loads + 1 + uses.copies;
    return cost.arithmetic <= kCheapArithmetic && cost.loads <= kCheapLoads && saves_memory;
  }

  void inline_into(const Producer& producer, std::size_t reader) {
    auto& consumer = std::get<Kernel>(program_.steps[reader]);
    internal_check(split_loops(producer, consumer), "what was possible before still is");
    observe::artifact(observe::Artifact::fusion, [&] {
      return "inlined " + producer.kernel->name + " into " + consumer.name;
    });
    InlinedBody(consumer, producer).run();
    context_.applied(consumer);
  }

  enum class Splits : std::uint8_t { none, some, impossible };

  // Calls `split(pass, LoopSplit)` for the first load that needs its loops cut.
  template <typename KernelType, typename Split>
  static Splits find_split_of(const Producer& producer, KernelType& consumer, const Split& split) {
    for (auto& pass : consumer.passes) {
      const Sizes loops = loops_of(consumer, pass);
      for (const Instruction& instruction : pass.body) {
        if (instruction.op != Op::load || instruction.buffer != producer.store->buffer) continue;
        const InverseResult result = invert(producer.store->index, producer.kernel->outer,
                                            instruction.index, loops, instruction.conditions);
        if (result.map) continue;
        if (!result.split) return Splits::impossible;
        split(pass, *result.split);
        return Splits::some;
      }
    }
    return Splits::none;
  }

  static Splits needed_splits(const Producer& producer, const Kernel& consumer) {
    return find_split_of(producer, consumer, [](const Pass&, const LoopSplit&) {});
  }

  // Cuts loops of the consumer until every load of the producer's result has a map.
  static bool split_loops(const Producer& producer, Kernel& consumer) {
    for (;;) {
      const Splits made =
          find_split_of(producer, consumer, [&](Pass& pass, const LoopSplit& split) {
            const std::size_t outer = consumer.outer.size();
            if (split.variable < outer) {
              split_outer_loop(consumer, split.variable, split.size);
            } else {
              split_inner_loop(consumer, pass, split.variable - outer, split.size);
            }
          });
      if (made != Splits::some) return made == Splits::none;
    }
  }

  LoopProgram& program_;
  StepContext& context_;
  std::vector<bool> is_output_;
  std::vector<bool> is_aliased_;
  std::vector<int> writers_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<bool> is_gone_;
};

}  // namespace

void inline_producers(LoopProgram& program, StepContext& context) {
  Inliner(program, context).run();
}

}  // namespace assay::kernels
