/// \file Loads and stores of KernelEmitter. A vector is one access where its lanes lie side by
/// side, one scalar for all lanes where they share an address, and lane by lane otherwise.
#include <algorithm>

#include "assay/error.h"
#include "kernels/emit/arithmetic.h"
#include "kernels/emit/define.h"
#include "kernels/emit/kernel_emitter.h"
#include "kernels/emit/vectors.h"

namespace assay::kernels {

bool KernelEmitter::is_scratch(BufferId buffer) const {
  return program_.buffers[buffer].kind == Buffer::Kind::scratch;
}

// Columns have a row of scratch for each lane; otherwise whole vectors may hang over the end.
std::int64_t KernelEmitter::scratch_elements(BufferId buffer) const {
  const std::int64_t elements = program_.buffers[buffer].elements;
  if (analysis_.mode == KernelAnalysis::Mode::columns) return elements * column_block();
  return elements + analysis_.lanes;
}

std::string KernelEmitter::address(ValueId id, const Context& context, int copy) const {
  const Instruction& found = instruction(id);
  if (is_scratch(found.buffer) && analysis_.mode == KernelAnalysis::Mode::columns) {
    Index index = found.index;
    for (std::int64_t& coefficient : index.coefficients) coefficient *= column_block();
    index.offset = index.offset * column_block() + static_cast<std::int64_t>(copy) * context.lanes;
    return pointer(found.buffer) + " + " + affine(index, context, 0);
  }
  return pointer(found.buffer) + " + " + affine(found.index, context, copy);
}

// From what is in memory to a value: a bool is a byte there.
std::string KernelEmitter::loaded(ValueId id, const std::string& memory_value, int lanes) {
  (void)lanes;
  return instruction(id).dtype == c10::ScalarType::Bool ? memory_value + " != 0" : memory_value;
}

std::string KernelEmitter::stored(ValueId value, c10::ScalarType dtype, const Context& context,
                                  int copy, int lanes) {
  if (dtype != c10::ScalarType::Bool) return operand(value, context, copy, lanes, 1);
  if (lanes == 1) return "(u8)" + scalar(value);
  return reinterpret(prelude_, mask(value, 1, context, copy) + " & 1", "u8", lanes);
}

std::string KernelEmitter::load_vector(ValueId id, const std::string& address, std::int64_t stride,
                                       const Context& context) {
  const BufferId buffer = instruction(id).buffer;
  const std::string element = memory_name(instruction(id).dtype);
  const bool is_whole = context.count.empty() || is_scratch(buffer);
  const std::string part = is_whole ? "" : "_part";
  const std::string count = is_whole ? "" : ", " + context.count;
  if (stride == 1) {
    return vector_function(prelude_, "load" + part, element, context.lanes) + "(" + address +
           count + ")";
  }
  if (stride == 2 && is_whole) {
    return vector_function(prelude_, "load_second", element, context.lanes) + "(" + address + ")";
  }
  return vector_function(prelude_, "load_strided" + part, element, context.lanes) + "(" + address +
         ", " + std::to_string(stride) + count + ")";
}

void KernelEmitter::store_vector(BufferId buffer, const std::string& address, std::int64_t stride,
                                 const std::string& value, const Context& context) {
  const std::string element = memory_name(program_.buffers[buffer].dtype);
  const bool is_whole = context.count.empty() || (is_scratch(buffer) && stride == 1);
  const std::string part = is_whole ? "" : "_part";
  const std::string count = is_whole ? "" : ", " + context.count;
  if (stride == 1) {
    line(vector_function(prelude_, "store" + part, element, context.lanes) + "(" + address + ", " +
         value + count + ");");
    return;
  }
  line(vector_function(prelude_, "store_strided" + part, element, context.lanes) + "(" + address +
       ", " + std::to_string(stride) + ", " + value + count + ");");
}

std::string KernelEmitter::tile_name(ValueId id) const { return "tile_" + std::to_string(id); }

// The lanes at which conditions hold that go up or down by one from lane to lane, as two arguments:
// the first one, and the one behind the last.
std::string KernelEmitter::range_of_lanes(const std::vector<const Condition*>& conditions,
                                          const Context& context, int copy) {
  std::string first;
  std::string last = context.count;
  const auto combine = [&](std::string& bound, const std::string& other,
                           std::string_view function) {
    if (bound.empty()) {
      bound = other;
      return;
    }
    const std::string sign = function == "larger" ? ">" : "<";
    if (prelude_.is_new(std::string(function))) {
      prelude_.add("inline_ long " + std::string(function) + "(long a, long b) { return a " + sign +
                   " b ? a : b; }\n");
    }
    bound = std::string(function) + "(" + bound + ", " + other + ")";
  };
  for (const Condition* entry : conditions) {
    const std::string start = "(" + affine(entry->index, context, copy) + ")";
    const std::string lower = std::to_string(entry->lower);
    const std::string upper = std::to_string(entry->upper);
    const bool goes_up = entry->index.coefficient(static_cast<std::size_t>(context.variable)) > 0;
    combine(first, goes_up ? lower + " - " + start : start + " - " + upper + " + 1", "larger");
    combine(last, goes_up ? upper + " - " + start : start + " - " + lower + " + 1", "smaller");
  }
  return first + ", " + last;
}

void KernelEmitter::emit_load(ValueId id, const Context& context) {
  const Instruction& found = instruction(id);
  if (analysis_.values[id].is_tiled) {
    const std::string i = variable_name(static_cast<std::size_t>(analysis_.tile_variable));
    return define(id, context, [&](int copy, int lanes) {
      const int pitch = context.copies * lanes;
      return loaded(id,
                    vector_function(prelude_, "load", memory_name(found.dtype), lanes) + "(" +
                        tile_name(id) + " + (" + i + " - strip) * " + std::to_string(pitch) +
                        " + " + std::to_string(copy * lanes) + ")",
                    lanes);
    });
  }
  const bool in_columns =
      is_scratch(found.buffer) && analysis_.mode == KernelAnalysis::Mode::columns;
  const std::int64_t stride =
      in_columns             ? 1
      : context.variable < 0 ? 0
                             : found.index.coefficient(static_cast<std::size_t>(context.variable));
  const bool is_bool = found.dtype == c10::ScalarType::Bool;
  auto whole = [&](int copy, int lanes) {
    if (lanes == 1) return loaded(id, "*(" + address(id, context, copy) + ")", 1);
    return loaded(id, load_vector(id, address(id, context, copy), stride, context), lanes);
  };
  if (found.conditions.empty()) return define(id, context, whole);

  // Conditions that hold for all lanes or for none are tested once.
  std::string same;
  std::vector<const Condition*> varying;
  for (const Condition& entry : found.conditions) {
    const bool varies = context.variable >= 0 && is_varying(id) &&
                        entry.index.coefficient(static_cast<std::size_t>(context.variable)) != 0;
    if (varies) {
      varying.push_back(&entry);
    } else {
      same += (same.empty() ? "" : " && ") + condition(entry, context);
    }
  }
  if (!is_varying(id)) {
    return define(id, context, [&](int copy, int) {
      return same + " ? " + (is_bool ? "(" + whole(copy, 1) + ")" : whole(copy, 1)) + " : " +
             scalar(found.operands[0]);
    });
  }
  const std::string element = memory_name(found.dtype);
  const int width = byte_width(element);
  Value& value = values_[id];
  value.names.clear();
  for (int copy = 0; copy < context.copies; ++copy) {
    std::string name = value_name(id);
    if (context.copies > 1) name += static_cast<char>('a' + copy);
    value.names.push_back(name);
    const std::string otherwise = operand(found.operands[0], context, copy, context.lanes, 1);
    line(value_type(id, context.lanes) + " " + name + " = " + otherwise + ";");
    // All lanes hold if the first and the last one do.
    std::string all = same;
    std::string lanes_mask;
    for (const Condition* entry : varying) {
      const auto step = entry->index.coefficient(static_cast<std::size_t>(context.variable));
      const std::string start = affine(entry->index, context, copy);
      const std::string last = start + (step < 0 ? " - " : " + ") +
                               std::to_string((step < 0 ? -step : step) * (context.lanes - 1));
      all += (all.empty() ? "" : " && ") + std::to_string(entry->lower) +
             " <= " + (step < 0 ? last : start) + " && " + (step < 0 ? start : last) + " < " +
             std::to_string(entry->upper);
      lanes_mask += (lanes_mask.empty() ? "" : " & ") + within(*entry, context, copy);
    }
    const bool is_partial = !context.count.empty();
    if (is_partial) lanes_mask = "(" + lanes_mask + ") & " + first_lanes(4, context);
    const std::string guard = same.empty() ? "" : "if (" + same + ") ";
    if (!is_partial && !varying.empty()) {
      if (stride == 0) {
        const std::string once =
            splat(prelude_, element, context.lanes, "*(" + address(id, context, copy) + ")");
        line("if (" + all + ") " + name + " = " + loaded(id, once, context.lanes) + ";");
      } else {
        line("if (" + all + ") " + name + " = " + whole(copy, context.lanes) + ";");
      }
    }
    if (varying.empty()) {
      line(guard + name + " = " + whole(copy, context.lanes) + ";");
      continue;
    }
    const std::string rest =
        is_bool ? stored(found.operands[0], found.dtype, context, copy, context.lanes) : otherwise;
    const bool is_range =
        stride == 1 && std::ranges::all_of(varying, [&](const Condition* entry) {
          return std::abs(entry->index.coefficient(static_cast<std::size_t>(context.variable))) ==
                 1;
        });
    // Lane by lane at the edges, unless these are neighbors.
    const std::string lanewise =
        is_range
            ? vector_function(prelude_, "load_range", element, context.lanes) + "(" +
                  address(id, context, copy) + ", " + range_of_lanes(varying, context, copy) +
                  ", " + rest + ")"
            : vector_function(prelude_, "load_where", element, context.lanes) + "(" +
                  address(id, context, copy) + ", " + std::to_string(stride) + ", " +
                  convert_mask(prelude_, lanes_mask, 4, width, context.lanes) + ", " + rest + ")";
    line((is_partial ? "" : "else ") + guard + name + " = " + loaded(id, lanewise, context.lanes) +
         ";");
  }
}

// What is the same in all lanes, as text to add to an address, and the rest, which several loads
// often share.
std::pair<std::string, ValueId> KernelEmitter::split_offset(ValueId offset) const {
  std::string common;
  while (instruction(offset).op == Op::add) {
    const ValueId left = instruction(offset).operands[0];
    const ValueId right = instruction(offset).operands[1];
    if (is_varying(left) == is_varying(right)) break;
    common += " + " + scalar(is_varying(left) ? right : left);
    offset = is_varying(left) ? left : right;
  }
  return {common, offset};
}

void KernelEmitter::emit_load_indirect(ValueId id, const Context& context) {
  const Instruction& found = instruction(id);
  const ValueId offset = found.operands[0];
  const ValueId guard = found.operands.size() > 1 ? found.operands[1] : kNoValue;
  const ValueId otherwise = found.operands.size() > 2 ? found.operands[2] : kNoValue;
  const bool is_bool = found.dtype == c10::ScalarType::Bool;
  const std::int64_t stride =
      context.variable < 0 ? 0
                           : found.index.coefficient(static_cast<std::size_t>(context.variable));
  const bool is_one_address = !is_varying(offset) && (guard == kNoValue || !is_varying(guard));
  const std::string element = memory_name(found.dtype);
  const int width = byte_width(element);

  define(id, context, [&](int copy, int lanes) -> std::string {
    if (lanes == 1 || is_one_address) {
      const std::string at = address(id, context, copy) + " + " + scalar(offset);
      std::string text = lanes == 1 ? loaded(id, "*(" + at + ")", 1)
                         : stride == 0
                             ? loaded(id, splat(prelude_, element, lanes, "*(" + at + ")"), lanes)
                             : loaded(id, load_vector(id, at, stride, context), lanes);
      if (guard == kNoValue) return text;
      return scalar(guard) + " ? " + text + " : " + operand(otherwise, context, copy, lanes, 1);
    }
    const auto [common, lanewise] = split_offset(offset);
    const std::string start = address(id, context, copy) + common;
    std::string offsets = vector(lanewise, context, copy);
    if (stride != 0) {
      offsets += " + " + std::to_string(stride) + "L * " + iota(prelude_, "i64", lanes);
    }
    if (guard == kNoValue && context.count.empty()) {
      return loaded(
          id,
          vector_function(prelude_, "lookup", element, lanes) + "(" + start + ", " + offsets + ")",
          lanes);
    }
    std::string live = guard == kNoValue ? "" : mask(guard, width, context, copy);
    if (!context.count.empty()) {
      live = (live.empty() ? "" : live + " & ") + first_lanes(width, context);
    }
    const std::string rest = otherwise == kNoValue
                                 ? splat(prelude_, element, lanes, "(" + element + ")0")
                             : is_bool ? stored(otherwise, found.dtype, context, copy, lanes)
                                       : vector(otherwise, context, copy);
    return loaded(id,
                  vector_function(prelude_, "lookup_where", element, lanes) + "(" + start + ", " +
                      offsets + ", " + live + ", " + rest + ")",
                  lanes);
  });
}

void KernelEmitter::emit_store(ValueId id, const Context& context) {
  const Instruction& found = instruction(id);
  const ValueId value = found.operands[0];
  const bool in_columns =
      is_scratch(found.buffer) && analysis_.mode == KernelAnalysis::Mode::columns;
  const std::int64_t stride =
      in_columns             ? 1
      : context.variable < 0 ? 0
                             : found.index.coefficient(static_cast<std::size_t>(context.variable));
  if (stride == 0 && !is_varying(value)) {
    return line("*(" + address(id, context, 0) +
                ") = " + stored(value, found.dtype, context, 0, 1) + ";");
  }
  for (int copy = 0; copy < context.copies; ++copy) {
    store_vector(found.buffer, address(id, context, copy), stride,
                 stored(value, found.dtype, context, copy, context.lanes), context);
  }
}

void KernelEmitter::emit_store_indirect(ValueId id, const Context& context) {
  const Instruction& found = instruction(id);
  const ValueId value = found.operands[0];
  const ValueId offset = found.operands[1];
  const bool is_add = found.op == Op::add_indirect;
  const std::string element = memory_name(found.dtype);
  const std::int64_t stride =
      context.variable < 0 ? 0
                           : found.index.coefficient(static_cast<std::size_t>(context.variable));
  // In C++, what is there plus what is added: halves in float, bools as `or`.
  auto sum = [&](const std::string& there, const std::string& added, int lanes) {
    const std::array<std::string, 2> operands = {there, added};
    if (found.dtype == c10::ScalarType::Bool) return there + " | " + added;
    if (element == "u16") {
      return narrow_to_half(prelude_,
                            widen_half(prelude_, there, found.dtype, lanes) + " + " +
                                widen_half(prelude_, added, found.dtype, lanes),
                            found.dtype, lanes);
    }
    return arithmetic(prelude_, Op::add, element, lanes, operands);
  };
  if (context.variable < 0 || (!is_varying(value) && !is_varying(offset) && stride == 0)) {
    const std::string place = "*(" + address(id, context, 0) + " + " + scalar(offset) + ")";
    const std::string added = stored(value, found.dtype, context, 0, 1);
    return line(place + " = " + (is_add ? sum(place, added, 1) : added) + ";");
  }
  for (int copy = 0; copy < context.copies; ++copy) {
    const std::string start = address(id, context, copy);
    const std::string vector_value = stored(value, found.dtype, context, copy, context.lanes);
    if (!is_varying(offset) && stride != 0) {
      const std::string at = start + " + " + scalar(offset);
      const bool is_partial = !context.count.empty();
      const std::string there = vector_function(prelude_,
                                                std::string(stride == 1 ? "load" : "load_strided") +
                                                    (is_partial ? "_part" : ""),
                                                element, context.lanes) +
                                "(" + at + (stride == 1 ? "" : ", " + std::to_string(stride)) +
                                (is_partial ? ", " + context.count : "") + ")";
      store_vector(found.buffer, at, stride,
                   is_add ? sum(there, vector_value, context.lanes) : vector_value, context);
      continue;
    }
    // One lane after the other: indices may repeat.
    const std::string suffix =
        std::to_string(id) +
        (context.copies > 1 ? std::string(1, static_cast<char>('a' + copy)) : "");
    const std::string count = context.count.empty() ? std::to_string(context.lanes) : context.count;
    line("const " + prelude_.type(element, context.lanes) + " from_" + suffix + " = " +
         vector_value + ";");
    line("const " + prelude_.type("i64", context.lanes) + " at_" + suffix + " = " +
         vector(offset, context, copy) +
         (stride == 0
              ? ""
              : " + " + std::to_string(stride) + "L * " + iota(prelude_, "i64", context.lanes)) +
         ";");
    open("for (long k = 0; k < " + count + "; ++k) {");
    line(element + "& place = *(" + start + " + at_" + suffix + "[k]);");
    const std::string added = "from_" + suffix + "[k]";
    line("place = " + (is_add ? sum("place", added, 1) : added) + ";");
    close();
  }
}

}  // namespace assay::kernels
