#include "kernels/emit/kernel_emitter.h"

#include <algorithm>
#include <cctype>

#include "assay/error.h"
#include "kernels/emit/arithmetic.h"
#include "kernels/emit/define.h"
#include "kernels/emit/polynomials.h"
#include "kernels/emit/vectors.h"

namespace assay::kernels {

namespace {

std::string identifier(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0) {
    result.insert(0, "b");
  }
  return result;
}

bool is_half(c10::ScalarType dtype) {
  return dtype == c10::ScalarType::Half || dtype == c10::ScalarType::BFloat16;
}

}  // namespace

KernelEmitter::KernelEmitter(const SameKernels& same, const LoopProgram& program,
                             const Target& target, Prelude& prelude, std::string symbol)
    : same_(same),
      kernel_(*same.members.front().kernel),
      program_(program),
      prelude_(prelude),
      symbol_(std::move(symbol)),
      analysis_(analyze(kernel_, program, target)),
      values_(analysis_.values.size()),
      pointers_(program.buffers.size()),
      check_number_(analysis_.values.size()) {
  std::size_t first = 0;
  for (const Pass& pass : kernel_.passes) {
    first_value_.push_back(first);
    first += pass.body.size();
  }
  first_value_.push_back(first);
  int checks = 0;
  for (std::size_t id = 0; id < analysis_.values.size(); ++id) {
    if (instruction(static_cast<ValueId>(id)).op == Op::check) check_number_[id] = ++checks;
  }
  for (const BufferId buffer : analysis_.buffers) {
    std::string name = identifier(program.buffers[buffer].name) + "_ptr";
    if (std::ranges::find(pointers_, name) != pointers_.end()) {
      name = identifier(program.buffers[buffer].name) + "_" + std::to_string(buffer) + "_ptr";
    }
    pointers_[buffer] = name;
  }
}

void KernelEmitter::line(const std::string& text) {
  code_.append(static_cast<std::size_t>(2 * indent_), ' ');
  code_ += text;
  code_ += '\n';
}

void KernelEmitter::open(const std::string& text) {
  line(text);
  ++indent_;
}

void KernelEmitter::close() {
  --indent_;
  line("}");
}

std::string KernelEmitter::variable_name(std::size_t variable) const {
  const std::size_t outer = kernel_.outer.size();
  if (variable < outer) return "i" + std::to_string(variable);
  return "r" + std::to_string(variable - outer);
}

std::string KernelEmitter::pointer(BufferId buffer) const { return pointers_[buffer]; }

std::string KernelEmitter::affine(const Index& index, const Context& context, int copy) const {
  std::string text;
  std::int64_t offset = index.offset;
  for (std::size_t k = 0; k < index.coefficients.size(); ++k) {
    const std::int64_t coefficient = index.coefficients[k];
    if (coefficient == 0) continue;
    if (static_cast<int>(k) == context.variable) offset += coefficient * copy * context.lanes;
    if (!text.empty()) text += coefficient < 0 ? " - " : " + ";
    if (text.empty() && coefficient < 0) text += "-";
    const std::int64_t magnitude = coefficient < 0 ? -coefficient : coefficient;
    if (magnitude != 1) text += std::to_string(magnitude) + " * ";
    text += variable_name(k);
  }
  if (text.empty()) return std::to_string(offset);
  if (offset > 0) text += " + " + std::to_string(offset);
  if (offset < 0) text += " - " + std::to_string(-offset);
  return text;
}

std::string KernelEmitter::condition(const Condition& condition, const Context& context) const {
  const std::string value = affine(condition.index, context, 0);
  return std::to_string(condition.lower) + " <= " + value + " && " + value + " < " +
         std::to_string(condition.upper);
}

// Lanes are compared by their distance from the first one, which 32 bits can hold.
std::string KernelEmitter::within(const Condition& entry, const Context& context, int copy) {
  const int lanes = context.lanes;
  const auto stride = entry.index.coefficient(static_cast<std::size_t>(context.variable));
  const std::string start = affine(entry.index, context, copy);
  const bool is_short = stride < (1 << 24) && stride > -(1 << 24);
  const std::string element = is_short ? "i32" : "i64";
  if (is_short && prelude_.is_new("clamp_i32")) {
    prelude_.add(
        "inline_ i32 clamp_i32(i64 x) {\n"
        "  return x < -0x7fffffff ? -0x7fffffff : x > 0x7fffffff ? 0x7fffffff : (i32)x;\n"
        "}\n");
  }
  auto distance = [&](std::int64_t bound) {
    return (is_short ? "clamp_i32(" : "(") + std::to_string(bound) + " - (" + start + "))";
  };
  // A number that a kernel for other sizes may take as an argument is not a vector's element.
  const std::string steps = "(" + splat(prelude_, element, lanes, std::to_string(stride)) + " * " +
                            iota(prelude_, element, lanes) + ")";
  const std::string text = "((" + steps + " >= " + distance(entry.lower) + ") & (" + steps + " < " +
                           distance(entry.upper) + "))";
  return is_short ? text : convert_mask(prelude_, text, 8, 4, lanes);
}

std::string KernelEmitter::scalar(ValueId id) const {
  if (instruction(id).op == Op::constant) {
    std::string text = literal(instruction(id).constant, instruction(id).dtype);
    return text.starts_with('-') ? "(" + text + ")" : text;
  }
  internal_check(!is_varying(id) && !values_[id].names.empty(), "a value is used where it is not");
  return values_[id].names[0];
}

std::string KernelEmitter::vector(ValueId id, const Context& context, int copy) {
  if (is_varying(id)) return values_[id].names.at(static_cast<std::size_t>(copy));
  return splat(prelude_, element_name(instruction(id).dtype), context.lanes, scalar(id));
}

std::string KernelEmitter::mask(ValueId id, int width, const Context& context, int copy) {
  if (is_varying(id)) {
    return convert_mask(prelude_, values_[id].names.at(static_cast<std::size_t>(copy)),
                        analysis_.values[id].mask_width, width, context.lanes);
  }
  return splat(prelude_, "i" + std::to_string(8 * width), context.lanes, scalar(id) + " ? -1 : 0");
}

std::string KernelEmitter::operand(ValueId id, const Context& context, int copy, int lanes,
                                   int width) {
  if (lanes == 1) return scalar(id);
  if (instruction(id).dtype == c10::ScalarType::Bool) return mask(id, width, context, copy);
  return vector(id, context, copy);
}

std::string KernelEmitter::first_lanes(int width, const Context& context) {
  return vector_function(prelude_, "first_lanes", "i" + std::to_string(8 * width), context.lanes) +
         "(" + context.count + ")";
}

std::string KernelEmitter::value_type(ValueId id, int lanes) {
  const c10::ScalarType dtype = instruction(id).dtype;
  if (lanes > 1 && dtype == c10::ScalarType::Bool) {
    return prelude_.type("i" + std::to_string(8 * analysis_.values[id].mask_width), lanes);
  }
  if (lanes > 1 && analysis_.values[id].is_position) return prelude_.type("i32", lanes);
  return prelude_.type(element_name(dtype), lanes);
}

std::string KernelEmitter::value_name(ValueId id) const {
  const Instruction& found = instruction(id);
  const std::string base = reads_memory(found.op) ? identifier(program_.buffers[found.buffer].name)
                                                  : to_string(found.op);
  return base + "_" + std::to_string(id);
}

void KernelEmitter::emit_level(int pass, Level level, const Context& context) {
  for (std::size_t id = first_value_[static_cast<std::size_t>(pass)];
       id < first_value_[static_cast<std::size_t>(pass) + 1]; ++id) {
    if (analysis_.values[id].level == level) emit_instruction(static_cast<ValueId>(id), context);
  }
}

void KernelEmitter::emit_instruction(ValueId id, const Context& context) {
  const Instruction& found = instruction(id);
  switch (found.op) {
    case Op::constant:  // written where it is used
      return;
    case Op::index:
      if (analysis_.values[id].is_only_compared) return;
      break;
    case Op::load:
      return emit_load(id, context);
    case Op::load_indirect:
      return emit_load_indirect(id, context);
    case Op::store:
      return emit_store(id, context);
    case Op::store_indirect:
    case Op::add_indirect:
      return emit_store_indirect(id, context);
    case Op::check:
      return emit_check(id, context);
    default:
      break;
  }
  if (is_reduction(found.op)) return emit_reduction(id, context);
  if (is_scan(found.op)) return emit_scan(id, context);
  if (is_varying(id) && context.copies > 1 && emit_side_by_side(id, context)) return;
  define(id, context, [&](int copy, int lanes) { return expression(id, context, copy, lanes); });
}

// One call for all copies of a function that is a long chain of instructions.
bool KernelEmitter::emit_side_by_side(ValueId id, const Context& context) {
  const Instruction& found = instruction(id);
  const std::string element = element_name(found.dtype);
  if (!is_float(element)) return false;
  const std::string function =
      define_side_by_side(prelude_, found.op, element, context.lanes, context.copies);
  if (function.empty()) return false;
  Value& value = values_[id];
  value.names.clear();
  std::string declaration = value_type(id, context.lanes);
  std::string arguments;
  for (int copy = 0; copy < context.copies; ++copy) {
    value.names.push_back(value_name(id) + static_cast<char>('a' + copy));
    const std::string separator = copy == 0 ? "" : ", ";
    declaration += (copy == 0 ? " " : ", ") + value.names.back() + " = " +
                   vector(found.operands[0], context, copy);
    arguments += separator + value.names.back();
  }
  line(declaration + ";");
  line(function + "(" + arguments + ");");
  return true;
}

std::string KernelEmitter::expression(ValueId id, const Context& context, int copy, int lanes) {
  const Instruction& found = instruction(id);
  switch (found.op) {
    case Op::index: {
      const std::string start = affine(found.index, context, copy);
      if (lanes == 1) return start;
      const auto stride = found.index.coefficient(static_cast<std::size_t>(context.variable));
      if (analysis_.values[id].is_position) {
        return splat(prelude_, "i32", lanes, "(i32)(" + start + ")") + " + " +
               splat(prelude_, "i32", lanes, std::to_string(stride)) + " * " +
               iota(prelude_, "i32", lanes);
      }
      return splat(prelude_, "i64", lanes, start) + " + " + std::to_string(stride) + "L * " +
             iota(prelude_, "i64", lanes);
    }
    case Op::condition: {
      std::string text;
      for (const Condition& entry : found.conditions) {
        if (!text.empty()) text += lanes == 1 ? " && " : " & ";
        if (lanes == 1) {
          text += condition(entry, context);
          continue;
        }
        text += within(entry, context, copy);
      }
      return text.empty() ? "true" : text;
    }
    case Op::cast:
      return cast(id, context, copy, lanes);
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
      if (analysis_.values[id].compared_index >= 0) return index_comparison(id, context, copy);
      break;
    case Op::bitcast:
      return reinterpret(prelude_, operand(found.operands[0], context, copy, lanes, 1),
                         element_name(found.dtype), lanes);
    default:
      break;
  }
  // The operands' type: that of the second one for `where`, whose first is a bool.
  const ValueId typed = found.operands[found.op == Op::where ? 1 : 0];
  const c10::ScalarType dtype = instruction(typed).dtype;
  const bool is_logic = dtype == c10::ScalarType::Bool;
  const int width = is_logic ? analysis_.values[id].mask_width : byte_width(dtype);
  const std::string element = element_name(dtype);
  if (lanes > 1 && !is_logic && !is_float(element) && is_integer_function(found.op) &&
      is_varying(found.operands[0]) && !is_varying(found.operands[1])) {
    return arithmetic_by_scalar(prelude_, found.op, element, lanes,
                                vector(found.operands[0], context, copy),
                                scalar(found.operands[1]));
  }
  c10::SmallVector<std::string, 3> operands;
  for (const ValueId value : found.operands) {
    operands.push_back(operand(value, context, copy, lanes, width));
  }
  const std::span<const std::string> list(operands.data(), operands.size());
  if (is_logic) return logic(found.op, lanes, list);
  return arithmetic(prelude_, found.op, element, lanes, list);
}

std::string KernelEmitter::index_comparison(ValueId id, const Context& context, int copy) {
  if (prelude_.is_new("distance_i32")) {
    prelude_.add(
        "inline_ i32 distance_i32(i64 from, i64 to) {\n"
        "  i64 x;\n"
        "  if (__builtin_sub_overflow(to, from, &x)) x = to;\n"
        "  return x < -0x7fffffff ? -0x7fffffff : x > 0x7fffffff ? 0x7fffffff : (i32)x;\n"
        "}\n");
  }
  const Instruction& found = instruction(id);
  const bool is_first = analysis_.values[id].compared_index == 0;
  const Index& index = instruction(found.operands[is_first ? 0 : 1]).index;
  const std::string step =
      std::to_string(index.coefficient(static_cast<std::size_t>(context.variable)));
  const std::string steps =
      splat(prelude_, "i32", context.lanes, step) + " * " + iota(prelude_, "i32", context.lanes);
  const std::string distance = "distance_i32(" + affine(index, context, copy) + ", " +
                               scalar(found.operands[is_first ? 1 : 0]) + ")";
  const std::string operands[] = {steps, splat(prelude_, "i32", context.lanes, distance)};
  const std::string swapped[] = {operands[1], operands[0]};
  return arithmetic(prelude_, found.op, "i32", context.lanes, is_first ? operands : swapped);
}

std::string KernelEmitter::cast(ValueId id, const Context& context, int copy, int lanes) {
  using c10::ScalarType;
  const ValueId source = instruction(id).operands[0];
  const ScalarType from = instruction(source).dtype;
  const ScalarType to = instruction(id).dtype;
  const int width = to == ScalarType::Bool ? analysis_.values[id].mask_width : byte_width(to);
  std::string value = operand(source, context, copy, lanes, width);
  if (from == to) return value;
  if (to == ScalarType::Bool) {
    if (is_half(from)) return "(" + value + " & 0x7fff) != 0";
    return value + " != " + literal(0, from);
  }
  if (from == ScalarType::Bool) {
    const std::string element = element_name(to);
    return value + " ? " + splat(prelude_, element, lanes, "(" + element + ")" + literal(1, to)) +
           " : " + splat(prelude_, element, lanes, "(" + element + ")" + literal(0, to));
  }
  std::string element = element_name(from);
  if (is_half(from)) {
    value = widen_half(prelude_, value, from, lanes);
    element = "f32";
  }
  if (!is_half(to)) return convert(prelude_, value, element, element_name(to), lanes);
  return narrow_to_half(prelude_, convert(prelude_, value, element, "f32", lanes), to, lanes);
}

void KernelEmitter::emit_check(ValueId id, const Context& context) {
  const ValueId condition = instruction(id).operands[0];
  std::string result =
      "return " + std::to_string(check_number_[id]) + ";  // " + instruction(id).message;
  std::ranges::replace(result, '\n', ' ');
  std::ranges::replace(result, '\\', '/');
  if (!is_varying(condition)) return line("if (!" + scalar(condition) + ") " + result);
  const int width = analysis_.values[condition].mask_width;
  std::string failed;
  for (int copy = 0; copy < context.copies; ++copy) {
    failed += (copy == 0 ? "~" : " | ~") + vector(condition, context, copy);
  }
  if (!context.count.empty()) failed = "(" + failed + ") & " + first_lanes(width, context);
  line("if (" + any_lane(prelude_, failed, width, context.lanes) + ") " + result);
}

void KernelEmitter::emit_comment() {
  code_ += "// kernel " + symbol_ + ": ";
  std::string loops;
  for (const std::int64_t size : kernel_.outer) {
    loops += (loops.empty() ? "" : " x ") + std::to_string(size);
  }
  code_ += loops.empty() ? "one point" : loops + " points";
  code_ += '\n';
  for (const graph::Node* node : kernel_.nodes) {
    code_ += "//   " + node->name() + ": " + std::string(node->target().base_name());
    if (!node->meta.stack.empty()) {
      const graph::StackFrame& frame = node->meta.stack.frames().back();
      std::string text = frame.text;
      std::ranges::replace(text, '\n', ' ');
      std::ranges::replace(text, '\\', '/');
      code_ += "  " + frame.file + ":" + std::to_string(frame.line) + "  " + text;
    }
    code_ += '\n';
  }
  for (const SameKernels::Member& member : std::span(same_.members).subspan(1)) {
    code_ += "//   the same:";
    for (const graph::Node* node : member.kernel->nodes) code_ += " " + node->name();
    code_ += '\n';
  }
}

}  // namespace assay::kernels
