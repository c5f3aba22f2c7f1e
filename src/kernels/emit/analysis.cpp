#include "kernels/emit/analysis.h"

#include <algorithm>

#include "kernels/emit/arithmetic.h"
#include "kernels/emit/prelude.h"

namespace assay::kernels {

namespace {

bool depends_on(const Index& index, int variable) {
  return variable >= 0 && index.coefficient(static_cast<std::size_t>(variable)) != 0;
}

// Instructions that a function call or a long polynomial stands behind.
int instruction_weight(Op op) {
  if (op >= Op::exp && op <= Op::sigmoid) return 16;
  switch (op) {
    case Op::pow:
    case Op::atan2:
    case Op::hypot:
    case Op::nextafter:
    case Op::div_floor:
    case Op::remainder:
    case Op::fmod:
    case Op::load_indirect:
    case Op::reduce_argmax:
    case Op::reduce_argmin:
      return 16;
    case Op::constant:
      return 0;
    default:
      return 1;
  }
}

class KernelAnalyzer {
 public:
  KernelAnalyzer(const Kernel& kernel, const LoopProgram& program) : kernel_(kernel) {
    analysis_.is_stored.resize(program.buffers.size());
    is_scratch_.resize(program.buffers.size());
    for (std::size_t k = 0; k < program.buffers.size(); ++k) {
      is_scratch_[k] = program.buffers[k].kind == Buffer::Kind::scratch;
    }
  }

  KernelAnalysis run(const Target& target) {
    bool has_inner = false;
    for (std::size_t p = 0; p < kernel_.passes.size(); ++p) {
      has_inner = has_inner || !kernel_.passes[p].inner.empty();
      for (const Instruction& instruction : kernel_.passes[p].body) {
        analysis_.values.push_back({&instruction, static_cast<int>(p), 0, false, 0});
        note_memory(instruction);
      }
    }
    has_empty_loop_ = std::ranges::count(kernel_.outer, 0) > 0;
    for (const Pass& pass : kernel_.passes) {
      has_empty_loop_ = has_empty_loop_ || std::ranges::count(pass.inner, 0) > 0;
    }
    choose_mode(has_inner);
    std::vector<Level> check_level(kernel_.passes.size());
    for (auto& value : analysis_.values) {
      const Pass& pass = kernel_.passes[static_cast<std::size_t>(value.pass)];
      place(value, pass, check_level[static_cast<std::size_t>(value.pass)]);
      value.is_varying = varies(value, pass);
      value.compared_index = compared_index(value, pass);
      if (value.is_varying && value.instruction->dtype == c10::ScalarType::Bool) {
        value.mask_width = mask_width(value);
      }
      analysis_.weight += instruction_weight(value.instruction->op);
    }
    find_positions();
    find_compared_indices();
    choose_lanes(target);
    choose_tiles(has_inner);
    return std::move(analysis_);
  }

 private:
  using Entry = KernelAnalysis::Instruction;

  void note_memory(const Instruction& instruction) {
    if (!touches_memory(instruction.op)) return;
    const BufferId buffer = instruction.buffer;
    if (std::ranges::find(analysis_.buffers, buffer) == analysis_.buffers.end()) {
      analysis_.buffers.push_back(buffer);
    }
    if (writes_memory(instruction.op)) analysis_.is_stored[buffer] = true;
    if (instruction.op == Op::store_indirect || instruction.op == Op::add_indirect) {
      analysis_.is_serial = true;
    }
  }

  void choose_mode(bool has_inner) {
    using Mode = KernelAnalysis::Mode;
    const bool has_outer = !kernel_.outer.empty();
    switch (kernel_.vectorize) {
      case Kernel::Vectorize::none:
        break;
      case Kernel::Vectorize::inner:
        analysis_.mode = has_inner ? Mode::inner : has_outer ? Mode::columns : Mode::scalar;
        break;
      case Kernel::Vectorize::outer:
        analysis_.mode = has_outer ? Mode::columns : Mode::scalar;
        // Points would be visited in another order.
        if (has_inner && analysis_.is_serial) analysis_.mode = Mode::scalar;
        break;
    }
  }

  // 0 for the variables of rows, 1 for the column's, 2 + k for the k-th inner loop.
  Level variable_level(std::size_t variable) const {
    const std::size_t outer = kernel_.outer.size();
    if (variable >= outer) return static_cast<Level>(2 + variable - outer);
    return variable + 1 == outer ? 1 : 0;
  }

  Level index_level(const Index& index) const {
    Level level = 0;
    for (std::size_t k = 0; k < index.coefficients.size(); ++k) {
      if (index.coefficients[k] != 0) level = std::max(level, variable_level(k));
    }
    return level;
  }

  void place(Entry& value, const Pass& pass, Level& check_level) {
    const Instruction& instruction = *value.instruction;
    const Level innermost = pass.inner.empty() ? 1 : static_cast<Level>(1 + pass.inner.size());
    Level level = index_level(instruction.index);
    for (const Condition& condition : instruction.conditions) {
      level = std::max(level, index_level(condition.index));
    }
    for (const ValueId operand : instruction.operands) {
      if (operand != kNoValue) level = std::max(level, result_level(analysis_.values[operand]));
    }
    const bool is_pinned =
        is_reduction(instruction.op) || is_scan(instruction.op) ||
        (touches_memory(instruction.op) &&
         (!reads_memory(instruction.op) || analysis_.is_stored[instruction.buffer])) ||
        (instruction.op == Op::check && has_empty_loop_);
    if (is_pinned) level = innermost;
    // An index is used only where it has been checked.
    if (instruction.op == Op::check) check_level = std::max(check_level, level);
    if (instruction.op == Op::load_indirect) level = std::max(level, check_level);
    value.level = level;
  }

  // A reduction is computed inside its loops, and there for others after them.
  Level result_level(const Entry& value) const {
    return is_reduction(value.instruction->op) ? 1 : value.level;
  }

  bool varies(const Entry& value, const Pass& pass) const {
    const Instruction& instruction = *value.instruction;
    const int variable = vector_variable(kernel_, analysis_, pass);
    if (variable < 0) return false;
    const bool is_columns = analysis_.mode == KernelAnalysis::Mode::columns;
    if (is_reduction(instruction.op) && !is_columns) return false;
    if (instruction.op == Op::load && is_columns && is_scratch_[instruction.buffer]) return true;
    bool result = depends_on(instruction.index, variable);
    for (const Condition& condition : instruction.conditions) {
      result = result || depends_on(condition.index, variable);
    }
    for (const ValueId operand : instruction.operands) {
      result = result || (operand != kNoValue && analysis_.values[operand].is_varying);
    }
    return result;
  }

  int mask_width(const Entry& value) const {
    const Instruction& instruction = *value.instruction;
    if (instruction.op == Op::condition || value.compared_index >= 0) return 4;
    if (reads_memory(instruction.op)) return 1;
    int width = 1;
    for (const ValueId operand : instruction.operands) {
      const Entry& entry = analysis_.values[operand];
      if (!entry.is_varying) continue;
      const c10::ScalarType dtype = entry.instruction->dtype;
      width =
          std::max(width, dtype == c10::ScalarType::Bool ? entry.mask_width : byte_width(dtype));
    }
    return width;
  }

  int compared_index(const Entry& value, const Pass& pass) const {
    const Instruction& instruction = *value.instruction;
    if (!value.is_varying || !is_comparison(instruction.op) || instruction.operands.size() != 2) {
      return -1;
    }
    const auto variable = static_cast<std::size_t>(vector_variable(kernel_, analysis_, pass));
    for (int k = 0; k < 2; ++k) {
      const Entry& index = analysis_.values[instruction.operands[static_cast<std::size_t>(k)]];
      const Entry& other = analysis_.values[instruction.operands[static_cast<std::size_t>(1 - k)]];
      constexpr std::int64_t kLongestStep = 1 << 24;  // times 64 lanes it fits into 32 bits
      if (index.instruction->op == Op::index && index.is_varying && !other.is_varying &&
          std::abs(index.instruction->index.coefficient(variable)) < kLongestStep) {
        return k;
      }
    }
    return -1;
  }

  void find_compared_indices() {
    for (auto& value : analysis_.values) {
      value.is_only_compared = value.instruction->op == Op::index && value.is_varying;
    }
    for (const auto& value : analysis_.values) {
      for (std::size_t k = 0; k < value.instruction->operands.size(); ++k) {
        const ValueId operand = value.instruction->operands[k];
        if (operand == kNoValue || value.compared_index == static_cast<int>(k)) continue;
        analysis_.values[operand].is_only_compared = false;
      }
    }
  }

  // Whether the values of an index grow from one point of the pass to the next, and are short.
  bool grows(const Index& index, const Pass& pass) const {
    const std::size_t outer = kernel_.outer.size();
    std::int64_t reach = 0;
    for (std::size_t k = pass.inner.size(); k-- > 0;) {
      const std::int64_t step = index.coefficient(outer + k);
      if (step <= reach) return false;
      reach += step * (pass.inner[k] - 1);
    }
    std::int64_t largest = reach + std::max<std::int64_t>(index.offset, 0);
    for (std::size_t k = 0; k < outer; ++k) {
      if (index.coefficient(k) < 0) return false;
      largest += index.coefficient(k) * (kernel_.outer[k] - 1);
    }
    return index.offset >= 0 && largest < (1 << 30);
  }

  void find_positions() {
    for (auto& value : analysis_.values) {
      const Pass& pass = kernel_.passes[static_cast<std::size_t>(value.pass)];
      value.is_position = value.instruction->op == Op::index && !pass.inner.empty() &&
                          grows(value.instruction->index, pass);
    }
    for (const auto& value : analysis_.values) {
      const bool is_arg =
          value.instruction->op == Op::reduce_argmax || value.instruction->op == Op::reduce_argmin;
      for (std::size_t k = 0; k < value.instruction->operands.size(); ++k) {
        const ValueId operand = value.instruction->operands[k];
        if (operand == kNoValue ||
            (is_arg && k == 1 && analysis_.values[operand].pass == value.pass)) {
          continue;
        }
        analysis_.values[operand].is_position = false;
      }
    }
  }

  // Tiles pay where a pointwise kernel reads along one loop and writes along another.
  void choose_tiles(bool has_inner) {
    if (analysis_.mode != KernelAnalysis::Mode::columns || has_inner || analysis_.is_serial) return;
    const std::size_t outer = kernel_.outer.size();
    if (outer < 2 || kernel_.outer.back() < analysis_.lanes) return;
    for (auto& value : analysis_.values) {
      const Instruction& instruction = *value.instruction;
      if (instruction.op != Op::load || !instruction.conditions.empty() ||
          analysis_.is_stored[instruction.buffer] || is_scratch_[instruction.buffer] ||
          instruction.index.coefficient(outer - 1) <= 1) {
        continue;
      }
      for (std::size_t k = 0; k + 1 < outer; ++k) {
        const bool fits =
            instruction.index.coefficient(k) == 1 && kernel_.outer[k] >= analysis_.lanes &&
            (analysis_.tile_variable < 0 || analysis_.tile_variable == static_cast<int>(k));
        if (!fits) continue;
        analysis_.tile_variable = static_cast<int>(k);
        value.is_tiled = true;
      }
    }
  }

  void choose_lanes(const Target& target) {
    int widest = 0;
    for (const Entry& value : analysis_.values) {
      const Op op = value.instruction->op;
      if (is_reduction(op) && value.instruction->dtype != c10::ScalarType::Bool &&
          is_vector_pass(analysis_, kernel_.passes[static_cast<std::size_t>(value.pass)])) {
        const bool is_short = value.instruction->operands.size() > 1 &&
                              analysis_.values[value.instruction->operands[1]].is_position;
        widest = std::max(widest, is_short ? 4 : byte_width(value.instruction->dtype));
      }
      if (op == Op::check || !value.is_varying || value.is_only_compared) continue;
      const bool is_bool = value.instruction->dtype == c10::ScalarType::Bool;
      const bool is_arg = op == Op::reduce_argmax || op == Op::reduce_argmin;
      const bool is_short =
          value.is_position ||
          (is_arg && analysis_.values[value.instruction->operands[1]].is_position);
      widest = std::max(widest, is_bool    ? value.mask_width
                                : is_short ? 4
                                           : byte_width(value.instruction->dtype));
      if (!value.instruction->conditions.empty()) widest = std::max(widest, 4);
    }
    if (widest == 0) analysis_.mode = KernelAnalysis::Mode::scalar;
    if (analysis_.mode == KernelAnalysis::Mode::scalar) return;
    analysis_.lanes = target.vector_bytes / widest;
    if (analysis_.mode == KernelAnalysis::Mode::columns) {
      analysis_.copies = choose_copies(analysis_.weight, kernel_.outer.back(), analysis_.lanes);
    }
  }

  const Kernel& kernel_;
  KernelAnalysis analysis_;
  std::vector<bool> is_scratch_;
  bool has_empty_loop_ = false;
};

}  // namespace

KernelAnalysis analyze(const Kernel& kernel, const LoopProgram& program, const Target& target) {
  return KernelAnalyzer(kernel, program).run(target);
}

bool is_vector_pass(const KernelAnalysis& analysis, const Pass& pass) {
  if (analysis.mode != KernelAnalysis::Mode::inner || pass.inner.empty()) return false;
  return std::ranges::none_of(pass.body, [](const Instruction& i) { return is_scan(i.op); });
}

int vector_variable(const Kernel& kernel, const KernelAnalysis& analysis, const Pass& pass) {
  const int outer = static_cast<int>(kernel.outer.size());
  if (analysis.mode == KernelAnalysis::Mode::columns) return outer - 1;
  return is_vector_pass(analysis, pass) ? outer + static_cast<int>(pass.inner.size()) - 1 : -1;
}

int pass_weight(const Pass& pass) {
  int weight = 0;
  for (const Instruction& instruction : pass.body) weight += instruction_weight(instruction.op);
  return weight;
}

int choose_copies(int weight, std::int64_t points, int lanes) {
  const std::int64_t vectors = points / lanes;
  int copies = weight <= 160 ? 4 : 2;
  while (copies > 1 && (vectors < copies || (vectors % copies != 0 && vectors < 4 * copies))) {
    copies /= 2;
  }
  return copies;
}

}  // namespace assay::kernels
