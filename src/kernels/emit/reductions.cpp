/// \file Reductions and scans of KernelEmitter. A reduction has one accumulator per vector that is
/// computed side by side; they are combined in a fixed order after the loop. Long sums of floats
/// are sums of partial sums, which are added in double precision: however many there are, the
/// rounding errors are those of one.
#include <array>

#include "kernels/emit/arithmetic.h"
#include "kernels/emit/define.h"
#include "kernels/emit/kernel_emitter.h"
#include "kernels/emit/vectors.h"

namespace assay::kernels {

namespace {

bool is_arg_reduction(Op op) { return op == Op::reduce_argmax || op == Op::reduce_argmin; }

std::string copy_suffix(int copy, int copies) {
  return copies > 1 ? std::string(1, static_cast<char>('a' + copy)) : std::string();
}

}  // namespace

int KernelEmitter::accumulator_lanes(ValueId id, const Context& context) const {
  if (context.variable < 0) return 1;
  return analysis_.mode == KernelAnalysis::Mode::inner || is_varying(id) ? context.lanes : 1;
}

int KernelEmitter::accumulator_width(ValueId id) const {
  const ValueId source = instruction(id).operands[0];
  const bool is_bool = instruction(source).dtype == c10::ScalarType::Bool;
  if (!is_bool) return byte_width(instruction(source).dtype);
  return is_varying(source) ? analysis_.values[source].mask_width : 1;
}

std::string KernelEmitter::accumulator_element(ValueId id, int lanes) const {
  const c10::ScalarType dtype = instruction(instruction(id).operands[0]).dtype;
  if (dtype == c10::ScalarType::Bool && lanes > 1) {
    return "i" + std::to_string(8 * accumulator_width(id));
  }
  return element_name(dtype);
}

bool KernelEmitter::has_partial_sums(ValueId id) const {
  return uses_partial_sums_ && instruction(id).op == Op::reduce_sum &&
         is_float(element_name(instruction(id).dtype));
}

std::string KernelEmitter::total_element(ValueId id) const {
  const std::string element = accumulator_element(id, 1);
  return element == "f32" ? "f64" : element;
}

// Vectors of positions are short where that is enough.
std::string KernelEmitter::position_element(ValueId id, int lanes) const {
  const bool is_short = lanes > 1 && analysis_.values[instruction(id).operands[1]].is_position;
  return is_short ? "i32" : "i64";
}

void KernelEmitter::declare_accumulators(ValueId id, const std::string& prefix,
                                         const Context& context) {
  const Instruction& found = instruction(id);
  const int lanes = accumulator_lanes(id, context);
  const int copies = lanes > 1 ? context.copies : 1;
  const std::string element = accumulator_element(id, lanes);
  const bool is_bool = instruction(found.operands[0]).dtype == c10::ScalarType::Bool;
  const bool starts_true = is_bool && (found.op == Op::reduce_all || found.op == Op::reduce_min);
  const std::string start =
      is_bool ? (starts_true ? (lanes > 1 ? "-1" : "true") : (lanes > 1 ? "0" : "false"))
              : reduction_start(found.op, element);
  Value& value = values_[id];
  value.names.clear();
  for (int copy = 0; copy < copies; ++copy) {
    const std::string suffix = std::to_string(id) + copy_suffix(copy, copies);
    value.names.push_back(prefix + suffix);
    line(prelude_.type(element, lanes) + " " + prefix + suffix + " = " +
         splat(prelude_, element, lanes, start) + ";");
    if (!is_arg_reduction(found.op)) continue;
    const std::string positions = position_element(id, lanes);
    std::string first = splat(prelude_, "i64", lanes, "9223372036854775807L");
    if (positions == "i32") {
      // A lane's first point, which counts even if its value is the smallest there is.
      Index index = instruction(found.operands[1]).index;
      const std::int64_t step = index.coefficient(static_cast<std::size_t>(context.variable));
      const std::size_t outer = kernel_.outer.size();
      for (std::size_t k = outer; k < index.coefficients.size(); ++k) index.coefficients[k] = 0;
      if (static_cast<std::size_t>(context.variable) >= outer) index.offset += step * copy * lanes;
      first = splat(prelude_, "i32", lanes, "(i32)(" + affine(index, context, copy) + ")");
      if (step != 0)
        first += " + " + splat(prelude_, "i32", lanes, std::to_string(step)) + " * " +
                 iota(prelude_, "i32", lanes);
    }
    line(prelude_.type(positions, lanes) + " position_" + suffix + " = " + first + ";");
  }
}

void KernelEmitter::declare_totals(ValueId id, const Context& context) {
  const int lanes = accumulator_lanes(id, context);
  const int copies = lanes > 1 ? context.copies : 1;
  const std::string element = total_element(id);
  Value& value = values_[id];
  value.totals.clear();
  for (int copy = 0; copy < copies; ++copy) {
    value.totals.push_back("total_" + std::to_string(id) + copy_suffix(copy, copies));
    line(prelude_.type(element, lanes) + " " + value.totals.back() + " = " +
         splat(prelude_, element, lanes, reduction_start(Op::reduce_sum, element)) + ";");
  }
}

void KernelEmitter::begin_reductions(int pass, const Context& context) {
  for_each_value(pass, [&](ValueId id) {
    if (!is_reduction(instruction(id).op)) return;
    if (has_partial_sums(id)) return declare_totals(id, context);
    declare_accumulators(id, "acc_", context);
  });
}

void KernelEmitter::begin_partial_sums(int pass, const Context& context) {
  for_each_value(pass, [&](ValueId id) {
    if (has_partial_sums(id)) declare_accumulators(id, "acc_", context);
  });
}

void KernelEmitter::end_partial_sums(int pass, const Context& context) {
  for_each_value(pass, [&](ValueId id) {
    if (!has_partial_sums(id)) return;
    const Value& value = values_[id];
    const int lanes = accumulator_lanes(id, context);
    for (std::size_t copy = 0; copy < value.names.size(); ++copy) {
      line(value.totals[copy] +
           " += " + converted(value.names[copy], total_element(id), id, lanes) + ";");
    }
  });
}

// A partial sum as one of another type, or a total as a partial sum.
std::string KernelEmitter::converted(const std::string& sum, const std::string& element, ValueId id,
                                     int lanes) {
  if (total_element(id) == accumulator_element(id, lanes)) return sum;
  if (lanes == 1) return "(" + element + ")" + sum;
  return "__builtin_convertvector(" + sum + ", " + prelude_.type(element, lanes) + ")";
}

// From here on, the totals are the sums.
void KernelEmitter::end_totals(ValueId id, int lanes) {
  Value& value = values_[id];
  const std::string element = accumulator_element(id, lanes);
  value.names.clear();
  for (const std::string& total : value.totals) {
    value.names.push_back("sum_" + total.substr(std::string_view("total_").size()));
    line(prelude_.type(element, lanes) + " " + value.names.back() + " = " +
         converted(total, element, id, lanes) + ";");
  }
}

std::string KernelEmitter::combine(Op step, ValueId id, int lanes, const std::string& a,
                                   const std::string& b) {
  const std::array<std::string, 2> operands = {a, b};
  if (instruction(instruction(id).operands[0]).dtype == c10::ScalarType::Bool) {
    return logic(step, lanes, operands);
  }
  return arithmetic(prelude_, step, accumulator_element(id, lanes), lanes, operands);
}

void KernelEmitter::emit_reduction(ValueId id, const Context& context) {
  const Instruction& found = instruction(id);
  const ValueId source = found.operands[0];
  const Pass& pass = kernel_.passes[static_cast<std::size_t>(analysis_.values[id].pass)];
  if (pass.inner.empty()) {  // of one point
    const ValueId result = is_arg_reduction(found.op) ? found.operands[1] : source;
    return define(id, context, [&](int copy, int lanes) {
      return operand(result, context, copy, lanes, accumulator_width(id));
    });
  }
  const int lanes = accumulator_lanes(id, context);
  const int copies = lanes > 1 ? context.copies : 1;
  const int width = accumulator_width(id);
  // Lanes of columns that are not in use do no harm; those of a row would count.
  const bool is_masked =
      lanes > 1 && !context.count.empty() && analysis_.mode == KernelAnalysis::Mode::inner;
  for (int copy = 0; copy < copies; ++copy) {
    const std::string& accumulator = values_[id].names[static_cast<std::size_t>(copy)];
    const std::string value = operand(source, context, copy, lanes, width);
    if (is_arg_reduction(found.op)) {
      emit_arg_step(id, context, copy, lanes, is_masked);
      continue;
    }
    const Op step = reduction_step(found.op);
    std::string updated = combine(step, id, lanes, accumulator, value);
    if (is_masked) updated = first_lanes(width, context) + " ? (" + updated + ") : " + accumulator;
    line(accumulator + " = " + updated + ";");
  }
}

std::string KernelEmitter::better(Op op, const std::string& element, const std::string& position,
                                  int lanes) {
  const std::string type = prelude_.type(element, lanes);
  // Short positions grow, so that the one that was there is the first.
  const bool is_short = position == "i32";
  std::string name = std::string(op == Op::reduce_argmax ? "above_" : "below_") + type +
                     (is_short ? "_later" : "");
  if (!prelude_.is_new(name)) return name;
  const std::string earlier =
      lanes == 1 ? "(at < best_at)"
                 : convert_mask(prelude_, "(at < best_at)", 8, byte_width(element), lanes);
  std::string text = "inline_ $R $N($V x, $P at, $V best, $P best_at) {\n  return (x $o best)";
  if (!is_short) text += " | ((x == best) & $e)";
  if (is_float(element)) {
    text += is_short ? " | ((x != x) & (best == best))" : " | ((x != x) & ((best == best) | $e))";
  }
  prelude_.add(fill_in(text + ";\n}\n",
                       {{"R", lanes == 1 ? "bool" : prelude_.type(integer_of(element), lanes)},
                        {"N", name},
                        {"V", type},
                        {"P", prelude_.type(position, lanes)},
                        {"o", op == Op::reduce_argmax ? ">" : "<"},
                        {"e", earlier}}));
  return name;
}

void KernelEmitter::emit_arg_step(ValueId id, const Context& context, int copy, int lanes,
                                  bool is_masked) {
  const Instruction& found = instruction(id);
  const std::string element = accumulator_element(id, lanes);
  const int width = byte_width(element);
  const std::string best = values_[id].names[static_cast<std::size_t>(copy)];
  const std::string position = "position_" + best.substr(std::string_view("acc_").size());
  const std::string positions = position_element(id, lanes);
  const ValueId source = found.operands[1];
  const std::string x = operand(found.operands[0], context, copy, lanes, width);
  const std::string at = positions == "i32" && !is_varying(source)
                             ? splat(prelude_, "i32", lanes, "(i32)" + scalar(source))
                             : operand(source, context, copy, lanes, 8);
  open("{");
  std::string test = better(found.op, element, positions, lanes) + "(" + x + ", " + at + ", " +
                     best + ", " + position + ")";
  if (is_masked) test += " & " + first_lanes(width, context);
  line("const " + (lanes == 1 ? "bool" : prelude_.type(integer_of(element), lanes)) +
       " better = " + test + ";");
  line(best + " = better ? " + x + " : " + best + ";");
  line(position + " = " +
       (lanes == 1 ? "better"
                   : convert_mask(prelude_, "better", width, byte_width(positions), lanes)) +
       " ? " + at + " : " + position + ";");
  close();
}

std::string KernelEmitter::fold(Op step, const std::string& element, int lanes) {
  std::string name = "fold_" + std::string(to_string(step)) + "_" + prelude_.type(element, lanes);
  if (!prelude_.is_new(name)) return name;
  std::string text = "inline_ " + element + " " + name + "(" + prelude_.type(element, lanes) +
                     " v" + std::to_string(lanes) + ") {\n";
  for (int half = lanes / 2; half >= 1; half /= 2) {
    const std::string whole = "v" + std::to_string(2 * half);
    const std::string a = "a" + std::to_string(half);
    const std::string b = "b" + std::to_string(half);
    const std::array<std::string, 2> operands = {a, b};
    const std::string type = prelude_.type(element, half);
    if (half == 1) {
      text += "  const " + type + " a1 = " + whole + "[0], b1 = " + whole + "[1];\n";
      text += "  return " + arithmetic(prelude_, step, element, 1, operands) + ";\n}\n";
      break;
    }
    for (int side = 0; side < 2; ++side) {
      text += "  const " + type + " " + (side == 0 ? a : b) + " = __builtin_shufflevector(" +
              whole + ", " + whole;
      for (int k = 0; k < half; ++k) text += ", " + std::to_string(side * half + k);
      text += ");\n";
    }
    text += "  const " + type + " v" + std::to_string(half) + " = " +
            arithmetic(prelude_, step, element, half, operands) + ";\n";
  }
  prelude_.add(text);
  return name;
}

void KernelEmitter::end_reductions(int pass, const Context& context) {
  for_each_value(pass, [&](ValueId id) {
    const Instruction& found = instruction(id);
    if (!is_reduction(found.op)) return;
    Value& value = values_[id];
    const int lanes = accumulator_lanes(id, context);
    if (is_arg_reduction(found.op)) return end_arg_reduction(id, lanes);
    if (has_partial_sums(id)) end_totals(id, lanes);
    if (lanes == 1 || analysis_.mode == KernelAnalysis::Mode::columns) return;
    const Op step = reduction_step(found.op);
    for (std::size_t distance = 1; distance < value.names.size(); distance *= 2) {
      for (std::size_t k = 0; k + distance < value.names.size(); k += 2 * distance) {
        line(value.names[k] + " = " +
             combine(step, id, lanes, value.names[k], value.names[k + distance]) + ";");
      }
    }
    const std::string name = value_name(id);
    const std::string& last = value.names[0];
    const int width = accumulator_width(id);
    std::string result;
    if (instruction(found.operands[0]).dtype != c10::ScalarType::Bool) {
      result = fold(step, accumulator_element(id, lanes), lanes) + "(" + last + ")";
    } else if (found.op == Op::reduce_all || found.op == Op::reduce_min) {
      result = "!" + any_lane(prelude_, "~" + last, width, lanes);
    } else {
      result = any_lane(prelude_, last, width, lanes);
    }
    line("const " + value_type(id, 1) + " " + name + " = " + result + ";");
    value.names = {name};
  });
}

void KernelEmitter::end_arg_reduction(ValueId id, int lanes) {
  Value& value = values_[id];
  std::vector<std::string> positions;
  for (const std::string& name : value.names) {
    positions.push_back("position_" + name.substr(std::string_view("acc_").size()));
  }
  if (lanes == 1 || analysis_.mode == KernelAnalysis::Mode::columns) {
    value.names = positions;
    if (position_element(id, lanes) == "i64") return;
    for (std::size_t copy = 0; copy < positions.size(); ++copy) {
      value.names[copy] = "long_" + positions[copy];
      line("const " + prelude_.type("i64", lanes) + " " + value.names[copy] + " = " +
           convert(prelude_, positions[copy], "i32", "i64", lanes) + ";");
    }
    return;
  }
  const std::string element = accumulator_element(id, lanes);
  const std::string best = "best_" + std::to_string(id);
  const std::string result = value_name(id);
  line(element + " " + best + " = " + reduction_start(instruction(id).op, element) + ";");
  line("i64 " + result + " = 9223372036854775807L;");
  open("for (int k = 0; k < " + std::to_string(lanes) + "; ++k) {");
  for (std::size_t copy = 0; copy < positions.size(); ++copy) {
    const std::string x = value.names[copy] + "[k]";
    const std::string at = positions[copy] + "[k]";
    open("if (" + better(instruction(id).op, element, "i64", 1) + "(" + x + ", " + at + ", " +
         best + ", " + result + ")) {");
    line(best + " = " + x + ";");
    line(result + " = " + at + ";");
    close();
  }
  close();
  value.names = {result};
}

void KernelEmitter::begin_scans(int pass, const Context& context) {
  for_each_value(pass, [&](ValueId id) {
    if (is_scan(instruction(id).op)) declare_accumulators(id, "state_", context);
  });
}

void KernelEmitter::emit_scan(ValueId id, const Context& context) {
  const Instruction& found = instruction(id);
  const std::vector<std::string> states = scan_states(id, context);
  const int width = accumulator_width(id);
  for (std::size_t copy = 0; copy < states.size(); ++copy) {
    const int lanes = accumulator_lanes(id, context);
    const std::string x = operand(found.operands[0], context, static_cast<int>(copy), lanes, width);
    line(states[copy] + " = " + combine(reduction_step(found.op), id, lanes, states[copy], x) +
         ";");
  }
  define(id, context, [&](int copy, int) { return states[static_cast<std::size_t>(copy)]; });
}

std::vector<std::string> KernelEmitter::scan_states(ValueId id, const Context& context) const {
  const int copies = accumulator_lanes(id, context) > 1 ? context.copies : 1;
  std::vector<std::string> states;
  for (int copy = 0; copy < copies; ++copy) {
    states.push_back("state_" + std::to_string(id) + copy_suffix(copy, copies));
  }
  return states;
}

}  // namespace assay::kernels
