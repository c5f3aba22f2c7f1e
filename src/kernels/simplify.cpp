#include "kernels/simplify.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "kernels/index_range.h"
#include "kernels/loop_edit.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_simplify(
    {.name = "simplify",
     .room = "kernels",
     .description = "removes equal and unused instructions, and joins loops"});

void append(std::string& key, std::int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));  // NOLINT: bytes of a key
}

void append(std::string& key, const Index& index) {
  append(key, index.offset);
  std::size_t count = index.coefficients.size();
  while (count > 0 && index.coefficients[count - 1] == 0) --count;
  append(key, static_cast<std::int64_t>(count));
  for (std::size_t i = 0; i < count; ++i) append(key, index.coefficients[i]);
}

// Equal for instructions that compute the same, at the same point.
std::string key_of(const Instruction& instruction) {
  std::string key;
  append(key, static_cast<std::int64_t>(instruction.op));
  append(key, static_cast<std::int64_t>(instruction.dtype));
  for (ValueId operand : instruction.operands) append(key, operand);
  append(key, -1);
  if (reads_memory(instruction.op)) append(key, instruction.buffer);
  append(key, instruction.index);
  for (const Condition& condition : instruction.conditions) {
    append(key, condition.index);
    append(key, condition.lower);
    append(key, condition.upper);
  }
  if (instruction.op == Op::constant) {
    const c10::Scalar& constant = instruction.constant;
    append(key, static_cast<std::int64_t>(constant.type()));
    if (constant.isFloatingPoint()) {
      append(key, std::bit_cast<std::int64_t>(constant.toDouble()));
    } else {
      append(key, constant.to<std::int64_t>());
    }
  }
  key += instruction.message;
  return key;
}

class KernelSimplifier {
 public:
  KernelSimplifier(Kernel& kernel, const std::vector<bool>& is_needed)
      : kernel_(kernel), is_needed_(is_needed) {}

  // How many instructions went away.
  std::size_t run() {
    const std::size_t before = count();
    drop_conditions();
    merge_equal();
    remove_unused();
    return before - count();
  }

 private:
  std::size_t count() const {
    std::size_t count = 0;
    for (const Pass& pass : kernel_.passes) count += pass.body.size();
    return count;
  }

  // What holds at every point need not be tested: windows that do not reach beyond their input.
  void drop_conditions() {
    for (Pass& pass : kernel_.passes) {
      const Sizes loops = loops_of(kernel_, pass);
      for (Instruction& instruction : pass.body) {
        if (instruction.conditions.empty()) continue;
        std::erase_if(instruction.conditions, [&](const Condition& condition) {
          const auto range = index_range(condition.index, loops);
          return range && range->lower >= condition.lower && range->upper < condition.upper;
        });
        if (!instruction.conditions.empty()) continue;
        if (instruction.op == Op::load) {
          instruction.operands.clear();
        } else {
          instruction.op = Op::constant;
          instruction.constant = c10::Scalar(true);
        }
      }
    }
  }

  // The first of several equal instructions stands for all. Inside inner loops that holds within a
  // pass; values of passes without loops can be used everywhere.
  void merge_equal() {
    std::unordered_map<std::string, ValueId> outside;
    ValueId next = 0;
    std::vector<ValueId> values;
    for (Pass& pass : kernel_.passes) {
      std::unordered_map<std::string, ValueId> inside;
      auto& known = pass.inner.empty() ? outside : inside;
      std::vector<Instruction> kept;
      kept.reserve(pass.body.size());
      for (Instruction& instruction : pass.body) {
        for (ValueId& operand : instruction.operands) {
          if (operand != kNoValue) operand = values[operand];
        }
        if (is_same_cast(instruction, kept, next)) {
          values.push_back(instruction.operands[0]);
          continue;
        }
        if (is_choice_made(instruction, kept, next)) {
          values.push_back(instruction.operands[1]);
          continue;
        }
        if (const auto rounded = value_before_rounding(instruction, kept, next)) {
          values.push_back(*rounded);
          continue;
        }
        if (has_no_result(instruction.op)) {
          if (writes_memory(instruction.op)) {
            forget_loads(outside, instruction.buffer);
            forget_loads(inside, instruction.buffer);
          } else if (!known.emplace(key_of(instruction), next).second) {
            values.push_back(kNoValue);  // the same check again
            continue;
          }
        } else {
          std::string key = key_of(instruction);
          if (const auto found = known.find(key); found != known.end()) {
            values.push_back(found->second);
            continue;
          }
          if (!pass.inner.empty()) {
            const auto found = outside.find(key);
            const bool is_usable = found != outside.end() && !is_reduction(instruction.op) &&
                                   !is_scan(instruction.op) && !depends_on_inner(instruction);
            if (is_usable) {
              values.push_back(found->second);
              continue;
            }
          }
          if (reads_memory(instruction.op)) loads_[instruction.buffer].push_back(key);
          known.emplace(std::move(key), next);
        }
        values.push_back(next++);
        kept.push_back(std::move(instruction));
      }
      pass.body = std::move(kept);
    }
  }

  // Keys hold the numbers of operands, so only the index says whether the loops matter.
  bool depends_on_inner(const Instruction& instruction) const {
    const auto depends = [&](const Index& index) {
      for (std::size_t i = kernel_.outer.size(); i < index.coefficients.size(); ++i) {
        if (index.coefficients[i] != 0) return true;
      }
      return false;
    };
    return depends(instruction.index) ||
           std::ranges::any_of(instruction.conditions, [&](const Condition& condition) {
             return depends(condition.index);
           });
  }

  // A cast to the type that the value has already, in the same pass.
  static bool is_same_cast(const Instruction& instruction, const std::vector<Instruction>& kept,
                           ValueId next) {
    if (instruction.op != Op::cast) return false;
    const Instruction* operand = kept_one(instruction.operands[0], kept, next);
    return operand != nullptr && operand->dtype == instruction.dtype;
  }

  // A float that is cast to a half and back, and is one already: what comes out went in.
  static std::optional<ValueId> value_before_rounding(const Instruction& instruction,
                                                      const std::vector<Instruction>& kept,
                                                      ValueId next) {
    if (instruction.op != Op::cast || instruction.dtype != c10::ScalarType::Float) return {};
    const Instruction* narrow = kept_one(instruction.operands[0], kept, next);
    if (narrow == nullptr || narrow->op != Op::cast) return {};
    const ValueId value = narrow->operands[0];
    const Instruction* wide = kept_one(value, kept, next);
    if (wide == nullptr || wide->dtype != c10::ScalarType::Float) return {};
    constexpr int kDeepest = 6;
    return is_half(value, narrow->dtype, kept, next, kDeepest) ? std::optional(value)
                                                               : std::nullopt;
  }

  // Whether a float is a number of a half's type, by what computed it.
  static bool is_half(ValueId value, c10::ScalarType dtype, const std::vector<Instruction>& kept,
                      ValueId next, int depth) {
    const Instruction* found = kept_one(value, kept, next);
    if (found == nullptr || depth == 0) return false;
    const auto is = [&](std::size_t operand) {
      return is_half(found->operands[operand], dtype, kept, next, depth - 1);
    };
    switch (found->op) {
      case Op::cast: {
        const Instruction* from = kept_one(found->operands[0], kept, next);
        return from != nullptr && from->dtype == dtype;
      }
      case Op::constant: {
        const float number = found->constant.to<float>();
        return dtype == c10::ScalarType::Half
                   ? static_cast<float>(static_cast<c10::Half>(number)) == number
                   : static_cast<float>(static_cast<c10::BFloat16>(number)) == number;
      }
      case Op::neg:
      case Op::abs:
        return is(0);
      case Op::maximum:
      case Op::minimum:
        return is(0) && is(1);
      case Op::where:
        return is(1) && is(2);
      default:
        return false;
    }
  }

  // An instruction of the pass that is being rewritten.
  static const Instruction* kept_one(ValueId value, const std::vector<Instruction>& kept,
                                     ValueId next) {
    const ValueId first = next - static_cast<ValueId>(kept.size());
    return value >= first && value < next ? &kept[value - first] : nullptr;
  }

  // `where` of a condition that always holds.
  static bool is_choice_made(const Instruction& instruction, const std::vector<Instruction>& kept,
                             ValueId next) {
    if (instruction.op != Op::where) return false;
    const Instruction* found = kept_one(instruction.operands[0], kept, next);
    return found != nullptr && found->op == Op::constant && found->constant.isBoolean() &&
           found->constant.toBool();
  }

  void forget_loads(std::unordered_map<std::string, ValueId>& known, BufferId buffer) {
    const auto found = loads_.find(buffer);
    if (found == loads_.end()) return;
    for (const std::string& key : found->second) known.erase(key);
  }

  // Stores of what is needed, and checks, need what they are computed from.
  void remove_unused() {
    std::vector<bool> is_used(count(), false);
    std::unordered_map<BufferId, bool> is_loaded;
    std::size_t number = is_used.size();
    // From the end, so that a load that is itself unused keeps no store.
    for (auto pass = kernel_.passes.rbegin(); pass != kernel_.passes.rend(); ++pass) {
      for (auto instruction = pass->body.rbegin(); instruction != pass->body.rend();
           ++instruction) {
        --number;
        const Op op = instruction->op;
        if (writes_memory(op)) {
          is_used[number] = is_needed_[instruction->buffer] || is_loaded[instruction->buffer];
        } else if (op == Op::check) {
          is_used[number] = true;
        }
        if (!is_used[number]) continue;
        if (reads_memory(op) || op == Op::add_indirect) is_loaded[instruction->buffer] = true;
        for (ValueId operand : instruction->operands) {
          if (operand != kNoValue) is_used[operand] = true;
        }
      }
    }
    std::vector<ValueId> values;
    ValueId next = 0;
    for (Pass& pass : kernel_.passes) {
      std::vector<Instruction> kept;
      for (Instruction& instruction : pass.body) {
        const bool is_kept = is_used[values.size()];
        values.push_back(is_kept ? next++ : kNoValue);
        if (!is_kept) continue;
        for (ValueId& operand : instruction.operands) {
          if (operand != kNoValue) operand = values[operand];
        }
        kept.push_back(std::move(instruction));
      }
      pass.body = std::move(kept);
    }
    std::erase_if(kernel_.passes, [](const Pass& pass) { return pass.body.empty(); });
  }

  Kernel& kernel_;
  const std::vector<bool>& is_needed_;
  std::unordered_map<BufferId, std::vector<std::string>> loads_;
};

// Buffers that a step other than `step` reads, or that leave the program.
class NeededBuffers {
 public:
  explicit NeededBuffers(const LoopProgram& program)
      : is_output_(output_buffers(program)), readers_(program.buffers.size()) {
    for (std::size_t step = 0; step < program.steps.size(); ++step) {
      for (BufferId buffer : uses_of(program.steps[step]).reads) readers_[buffer].push_back(step);
    }
    for (const Buffer& buffer : program.buffers) {
      for (BufferId base : buffer.aliases) is_output_[base] = true;
    }
    for (BufferId id = 0; id < program.buffers.size(); ++id) {
      if (program.buffers[id].kind != Buffer::Kind::intermediate &&
          program.buffers[id].kind != Buffer::Kind::scratch) {
        is_output_[id] = true;
      }
    }
  }

  void remove_reads(std::size_t step, const StepUses& uses) {
    for (BufferId buffer : uses.reads) std::erase(readers_[buffer], step);
  }

  std::vector<bool> needed_after(std::size_t step, const std::vector<BufferId>& written) const {
    std::vector<bool> is_needed = is_output_;
    for (BufferId buffer : written) {
      is_needed[buffer] =
          is_output_[buffer] ||
          std::ranges::any_of(readers_[buffer], [&](std::size_t reader) { return reader != step; });
    }
    return is_needed;
  }

 private:
  std::vector<bool> is_output_;
  std::vector<std::vector<std::size_t>> readers_;
};

}  // namespace

void simplify(LoopProgram& program, StepContext& context) {
  NeededBuffers needed(program);
  // From the end: what only an unneeded kernel reads is not needed either.
  for (std::size_t step = program.steps.size(); step-- > 0;) {
    auto* kernel = std::get_if<Kernel>(&program.steps[step]);
    if (kernel == nullptr || !context.may_apply()) continue;
    const StepUses before = uses_of(program.steps[step]);
    KernelSimplifier(*kernel, needed.needed_after(step, before.writes)).run();
    join_loops(*kernel);
    context.applied(*kernel);
    StepUses gone = before;
    const StepUses after = uses_of(program.steps[step]);
    std::erase_if(gone.reads, [&](BufferId buffer) {
      return std::ranges::find(after.reads, buffer) != after.reads.end();
    });
    needed.remove_reads(step, gone);
  }
  std::erase_if(program.steps, [](const Step& step) {
    const auto* kernel = std::get_if<Kernel>(&step);
    return kernel != nullptr && kernel->passes.empty();
  });
}

}  // namespace assay::kernels
