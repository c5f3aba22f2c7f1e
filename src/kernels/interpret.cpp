#include "kernels/interpret.h"

#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "assay/error.h"
#include "kernels/instructions.h"
#include "kernels/interpret_math.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

// A sum is kept in double, so that the order of its terms matters little.
ScalarType accumulator_dtype(Op op, ScalarType dtype) {
  const bool adds =
      op == Op::reduce_sum || op == Op::reduce_prod || op == Op::scan_sum || op == Op::scan_prod;
  return adds && c10::isFloatingType(dtype) ? ScalarType::Double : dtype;
}

bool is_floating(ScalarType dtype) { return c10::isFloatingType(dtype); }

Number lowest(ScalarType dtype) {
  if (is_floating(dtype)) return {0, -std::numeric_limits<double>::infinity()};
  if (dtype == ScalarType::Byte || dtype == ScalarType::Bool) return {0, 0};
  const auto bits = static_cast<int>(8 * c10::elementSize(dtype));
  return {std::numeric_limits<std::int64_t>::min() >> (64 - bits), 0};
}

Number highest(ScalarType dtype) {
  if (is_floating(dtype)) return {0, std::numeric_limits<double>::infinity()};
  if (dtype == ScalarType::Bool) return {1, 0};
  if (dtype == ScalarType::Byte) return {255, 0};
  const auto bits = static_cast<int>(8 * c10::elementSize(dtype));
  return {std::numeric_limits<std::int64_t>::max() >> (64 - bits), 0};
}

// What a reduction of nothing gives.
Number identity(Op op, ScalarType dtype) {
  switch (op) {
    case Op::reduce_prod:
    case Op::scan_prod:
    case Op::reduce_all:
      return {1, 1};
    case Op::reduce_max:
    case Op::scan_max:
      return lowest(dtype);
    case Op::reduce_min:
    case Op::scan_min:
      return highest(dtype);
    default:
      return {0, 0};
  }
}

Op combining(Op op) {
  switch (op) {
    case Op::reduce_sum:
    case Op::scan_sum:
      return Op::add;
    case Op::reduce_prod:
    case Op::scan_prod:
      return Op::mul;
    case Op::reduce_max:
    case Op::scan_max:
      return Op::maximum;
    case Op::reduce_min:
    case Op::scan_min:
      return Op::minimum;
    case Op::reduce_any:
      return Op::bitwise_or;
    case Op::reduce_all:
      return Op::bitwise_and;
    case Op::reduce_xor:
      return Op::bitwise_xor;
    default:
      throw InternalError(std::string(to_string(op)) + " is not a reduction");
  }
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, const LoopProgram& program, std::span<void* const> buffers)
      : kernel_(kernel), program_(program), memory_(buffers.begin(), buffers.end()) {
    for (const Pass& pass : kernel.passes) {
      for (const Instruction& instruction : pass.body) {
        dtypes_.push_back(instruction.dtype);
        if (!touches_memory(instruction.op)) continue;
        const Buffer& buffer = program.buffers[instruction.buffer];
        if (buffer.kind != Buffer::Kind::scratch) continue;
        std::vector<double>& scratch = scratch_[instruction.buffer];
        scratch.resize(static_cast<std::size_t>(buffer.elements));
        memory_[instruction.buffer] = scratch.data();
      }
    }
    values_.resize(dtypes_.size());
    best_.resize(dtypes_.size());
  }

  const char* run() {
    const std::size_t rank = kernel_.outer.size();
    point_.assign(rank, 0);
    const std::int64_t points = count(kernel_.outer);
    for (std::int64_t i = 0; i < points && failure_ == nullptr; ++i) {
      ValueId first = 0;
      for (const Pass& pass : kernel_.passes) {
        run_pass(pass, first);
        first += static_cast<ValueId>(pass.body.size());
        point_.resize(rank);
      }
      advance(kernel_.outer, 0);
    }
    return failure_;
  }

 private:
  static std::int64_t count(const Sizes& sizes) {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes) product *= size;
    return product;
  }

  // To the next point of the loops whose variables start at `first`; the last one is fastest.
  void advance(const Sizes& sizes, std::size_t first) {
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (++point_[first + i] < sizes[i]) return;
      point_[first + i] = 0;
    }
  }

  void run_pass(const Pass& pass, ValueId first) {
    const std::size_t rank = kernel_.outer.size();
    point_.resize(rank + pass.inner.size(), 0);
    for (std::size_t i = 0; i < pass.body.size(); ++i) {
      if (!is_reduction(pass.body[i].op) && !is_scan(pass.body[i].op)) continue;
      const Instruction& instruction = pass.body[i];
      const ScalarType dtype = dtypes_[instruction.operands[0]];
      values_[first + i] = identity(instruction.op, dtype);
      best_[first + i] = {};
    }
    const std::int64_t points = count(pass.inner);
    for (std::int64_t i = 0; i < points && failure_ == nullptr; ++i) {
      const bool starts_row = pass.inner.empty() || point_.back() == 0;
      for (std::size_t k = 0; k < pass.body.size() && failure_ == nullptr; ++k) {
        execute(pass.body[k], first + static_cast<ValueId>(k), i == 0, starts_row);
      }
      advance(pass.inner, rank);
    }
    for (std::size_t i = 0; i < pass.body.size(); ++i) {
      const Instruction& instruction = pass.body[i];
      if (!is_reduction(instruction.op)) continue;
      const ScalarType kept = accumulator_dtype(instruction.op, instruction.dtype);
      values_[first + i] = convert_number(values_[first + i], kept, instruction.dtype);
    }
  }

  std::int64_t evaluate(const Index& index) const {
    std::int64_t value = index.offset;
    for (std::size_t i = 0; i < index.coefficients.size() && i < point_.size(); ++i) {
      value += index.coefficients[i] * point_[i];
    }
    return value;
  }

  bool hold(const std::vector<Condition>& conditions) const {
    for (const Condition& condition : conditions) {
      const std::int64_t value = evaluate(condition.index);
      if (value < condition.lower || value >= condition.upper) return false;
    }
    return true;
  }

  // The element an access means; throws if it is outside the buffer, whoever is to blame.
  std::int64_t element(const Instruction& instruction, std::int64_t added) const {
    const std::int64_t found = evaluate(instruction.index) + added;
    const Buffer& buffer = program_.buffers[instruction.buffer];
    if (found < 0 || found >= buffer.elements) {
      throw InternalError(kernel_.name + " accesses element " + std::to_string(found) + " of " +
                          buffer.name + ", which has " + std::to_string(buffer.elements));
    }
    return found;
  }

  Number read(const Instruction& instruction, std::int64_t added = 0) const {
    return read_number(memory_[instruction.buffer], program_.buffers[instruction.buffer].dtype,
                       element(instruction, added));
  }
  void write(const Instruction& instruction, Number value, std::int64_t added = 0) {
    write_number(memory_[instruction.buffer], program_.buffers[instruction.buffer].dtype,
                 element(instruction, added), value);
  }

  void execute(const Instruction& instruction, ValueId id, bool is_first, bool starts_row) {
    const auto operand = [&](std::size_t i) { return values_[instruction.operands[i]]; };
    const auto dtype_of = [&](std::size_t i) { return dtypes_[instruction.operands[i]]; };
    Number& result = values_[id];
    switch (instruction.op) {
      case Op::load:
        result = hold(instruction.conditions) ? read(instruction) : operand(0);
        return;
      case Op::load_indirect:
        if (instruction.operands.size() > 1 && operand(1).integer == 0) {
          result = operand(2);
        } else {
          result = read(instruction, operand(0).integer);
        }
        return;
      case Op::store:
        write(instruction, operand(0));
        return;
      case Op::store_indirect:
        write(instruction, operand(0), operand(1).integer);
        return;
      case Op::add_indirect:
        add_to_memory(instruction, operand(0), operand(1).integer);
        return;
      case Op::constant:
        result = constant(instruction);
        return;
      case Op::index:
        result = {evaluate(instruction.index), 0};
        return;
      case Op::condition:
        result = {hold(instruction.conditions), 0};
        return;
      case Op::cast:
        result = convert_number(operand(0), dtype_of(0), instruction.dtype);
        return;
      case Op::bitcast:
        result = reinterpret_number(operand(0), dtype_of(0), instruction.dtype);
        return;
      case Op::where:
        result = operand(0).integer != 0 ? operand(1) : operand(2);
        return;
      case Op::fma:
        result = compute_fma(instruction.dtype, operand(0), operand(1), operand(2));
        return;
      case Op::reduce_argmax:
      case Op::reduce_argmin:
        take_extreme(instruction, id, operand(0), operand(1), dtype_of(0), is_first);
        return;
      case Op::check:
        if (operand(0).integer == 0) failure_ = instruction.message.c_str();
        return;
      default:
        break;
    }
    if (is_reduction(instruction.op)) {
      const ScalarType kept = accumulator_dtype(instruction.op, instruction.dtype);
      result = compute_binary(combining(instruction.op), kept, result, operand(0));
    } else if (is_scan(instruction.op)) {
      scan(instruction, id, operand(0), starts_row);
    } else if (instruction.operands.size() == 1) {
      result = compute_unary(instruction.op, dtype_of(0), operand(0));
    } else {
      result = compute_binary(instruction.op, dtype_of(0), operand(0), operand(1));
    }
  }

  static Number constant(const Instruction& instruction) {
    if (is_floating(instruction.dtype)) return {0, instruction.constant.toDouble()};
    return {instruction.constant.to<std::int64_t>(), 0};
  }

  void add_to_memory(const Instruction& instruction, Number value, std::int64_t added) {
    const ScalarType dtype = program_.buffers[instruction.buffer].dtype;
    const ScalarType wide = c10::isReducedFloatingType(dtype) ? ScalarType::Float : dtype;
    const Op op = dtype == ScalarType::Bool ? Op::bitwise_or : Op::add;
    const Number sum = compute_binary(op, wide, read(instruction, added), value);
    write(instruction, convert_number(sum, wide, dtype), added);
  }

  // `best_` holds the accumulator of a scan, or the extreme value that a position belongs to.
  void scan(const Instruction& instruction, ValueId id, Number value, bool starts_row) {
    const ScalarType kept = accumulator_dtype(instruction.op, instruction.dtype);
    if (starts_row) best_[id] = identity(instruction.op, instruction.dtype);
    best_[id] = compute_binary(combining(instruction.op), kept, best_[id], value);
    values_[id] = convert_number(best_[id], kept, instruction.dtype);
  }

  void take_extreme(const Instruction& instruction, ValueId id, Number value, Number position,
                    ScalarType dtype, bool is_first) {
    const bool is_max = instruction.op == Op::reduce_argmax;
    bool is_better = is_first;
    bool is_equal = false;
    if (is_floating(dtype)) {
      const double best = best_[id].floating;
      const bool is_nan = std::isnan(value.floating);
      is_equal = value.floating == best || (is_nan && std::isnan(best));
      const bool beats = is_max ? value.floating > best : value.floating < best;
      is_better |= beats || (is_nan && !std::isnan(best));
    } else {
      const std::int64_t best = best_[id].integer;
      is_equal = value.integer == best;
      is_better |= is_max ? value.integer > best : value.integer < best;
    }
    is_better |= is_equal && position.integer < values_[id].integer;
    if (!is_better) return;
    best_[id] = value;
    values_[id] = position;
  }

  const Kernel& kernel_;
  const LoopProgram& program_;
  std::vector<void*> memory_;
  /// Of 8 bytes per element, enough for every dtype.
  std::unordered_map<BufferId, std::vector<double>> scratch_;
  std::vector<ScalarType> dtypes_;
  std::vector<Number> values_;
  std::vector<Number> best_;
  std::vector<std::int64_t> point_;
  const char* failure_ = nullptr;
};

}  // namespace

const char* interpret(const Kernel& kernel, const LoopProgram& program,
                      std::span<void* const> buffers) {
  return Interpreter(kernel, program, buffers).run();
}

}  // namespace assay::kernels
