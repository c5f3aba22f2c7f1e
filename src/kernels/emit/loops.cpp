/// \file The loops of KernelEmitter, from the range of work units down to one point.
#include <algorithm>

#include "kernels/emit/kernel_emitter.h"
#include "kernels/emit/vectors.h"

namespace assay::kernels {

namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

// Scratch beyond this does not go on the stack.
constexpr std::int64_t kStackBytes = 64 * 1024;

}  // namespace

EmittedKernel KernelEmitter::emit(std::string& code) {
  EmittedKernel result;
  result.symbol = symbol_;
  result.is_serial = analysis_.is_serial;
  for (const BufferId buffer : analysis_.buffers) {
    if (!is_scratch(buffer)) result.buffers.push_back(buffer);
  }
  if (kernel_.outer.size() == 1 && analysis_.tile_variable < 0) {
    result.points = columns();
    result.unit = column_block();
  } else {
    result.points =
        analysis_.tile_variable >= 0 ? 1 : (columns() + column_block() - 1) / column_block();
  }
  for (std::size_t k = 0; k + 1 < kernel_.outer.size(); ++k) {
    const bool is_tiled = static_cast<int>(k) == analysis_.tile_variable;
    result.points *=
        is_tiled ? (kernel_.outer[k] + analysis_.lanes - 1) / analysis_.lanes : kernel_.outer[k];
  }

  emit_comment();
  open("extern \"C\" int " + symbol_ + "(void* const* buffers, long begin, long end) {");
  emit_declarations(result.buffers);
  if (analysis_.tile_variable >= 0) {
    emit_tiles();
  } else {
    emit_rows();
  }
  line("return 0;");
  close();
  code += code_;
  return result;
}

void KernelEmitter::emit_declarations(const std::vector<BufferId>& buffers) {
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    const std::string type = (analysis_.is_stored[buffers[k]] ? "" : "const ") +
                             memory_name(program_.buffers[buffers[k]].dtype) + "*";
    line(type + " const " + pointer(buffers[k]) + " = (" + type + ")buffers[" +
         number(static_cast<std::int64_t>(k)) + "];");
  }
  std::int64_t bytes = 0;
  for (const BufferId buffer : analysis_.buffers) {
    if (!is_scratch(buffer)) continue;
    const c10::ScalarType dtype = program_.buffers[buffer].dtype;
    const std::int64_t elements = scratch_elements(buffer);
    bytes += elements * byte_width(dtype);
    line((bytes > kStackBytes ? "static thread_local " : "") + memory_name(dtype) + " " +
         pointer(buffer) + "[" + number(elements) + "] __attribute__((aligned(64)));");
  }
}

void KernelEmitter::emit_rows() {
  const std::size_t outer = kernel_.outer.size();
  auto emit_row_level = [&] {
    for (std::size_t pass = 0; pass < kernel_.passes.size(); ++pass) {
      emit_level(static_cast<int>(pass), 0, Context{});
    }
  };
  if (outer == 0) {
    line("if (begin >= end) return 0;");
    emit_row_level();
    return emit_point(Context{});
  }
  const std::int64_t block = column_block();
  const std::string per_block = block == 1 ? "" : " * " + number(block);
  const bool is_exact = columns() % block == 0;
  if (outer == 1) {
    emit_row_level();
    return emit_columns("begin", "end");
  }
  const std::int64_t blocks = std::max<std::int64_t>(1, (columns() + block - 1) / block);
  open("for (long unit = begin; unit < end;) {");
  line("const long row = unit / " + number(blocks) + ";");
  std::int64_t below = 1;
  for (std::size_t k = outer - 1; k-- > 0;) {
    std::string text = below == 1 ? "row" : "row / " + number(below);
    if (k > 0) text += " % " + number(kernel_.outer[k]);
    line("const long " + variable_name(k) + " = " + text + ";");
    below *= std::max<std::int64_t>(1, kernel_.outer[k]);
  }
  // To the end of the row or of the range, whichever comes first.
  line("const long stop = row * " + number(blocks) + " + " + number(blocks) + " < end ? row * " +
       number(blocks) + " + " + number(blocks) + " : end;");
  line("const long first = (unit - row * " + number(blocks) + ")" + per_block + ";");
  const std::string last = "(stop - row * " + number(blocks) + ")" + per_block;
  line("const long last = " +
       (is_exact ? last
                 : last + " < " + number(columns()) + " ? " + last + " : " + number(columns())) +
       ";");
  line("unit = stop;");
  emit_row_level();
  emit_columns("first", "last");
  close();
}

// A unit is a strip of as many rows as a vector has lanes. Along it go tiles: what is contiguous
// along the rows is transposed once per tile, and read from there row by row.
void KernelEmitter::emit_tiles() {
  const std::size_t outer = kernel_.outer.size();
  const auto tile = static_cast<std::size_t>(analysis_.tile_variable);
  const int lanes = analysis_.lanes;
  const std::string width = number(lanes);
  const std::string j = variable_name(outer - 1);
  const std::int64_t rows = kernel_.outer[tile];
  open("for (long unit = begin; unit < end; ++unit) {");
  std::int64_t below = 1;
  for (std::size_t k = outer - 1; k-- > 0;) {
    const std::int64_t size = k == tile ? (rows + lanes - 1) / lanes : kernel_.outer[k];
    std::string text = below == 1 ? "unit" : "unit / " + number(below);
    if (k > 0) text += " % " + number(size);
    if (k == tile) {
      line("const long strip = (" + text + ") * " + width + ";");
    } else {
      line("const long " + variable_name(k) + " = " + text + ";");
    }
    below *= std::max<std::int64_t>(1, size);
  }
  line("const long rows = " + number(rows) + " - strip < " + width + " ? " + number(rows) +
       " - strip : " + width + ";");
  // Tiles side by side, then single ones, then what is left of one.
  const std::int64_t block = column_block();
  const std::int64_t main = columns() / block * block;
  const std::int64_t whole = columns() / lanes * lanes;
  if (main > 0) {
    open("for (long " + j + " = 0; " + j + " < " + number(main) + "; " + j +
         " += " + number(block) + ") {");
    emit_tile({lanes, analysis_.copies, "", static_cast<int>(outer) - 1});
    close();
  }
  if (main < whole) {
    open("for (long " + j + " = " + number(main) + "; " + j + " < " + number(whole) + "; " + j +
         " += " + width + ") {");
    emit_tile({lanes, 1, "", static_cast<int>(outer) - 1});
    close();
  }
  if (whole < columns()) {
    open("{");
    line("const long " + j + " = " + number(whole) + ";");
    emit_tile({lanes, 1, number(columns() - whole), static_cast<int>(outer) - 1});
    close();
  }
  close();
}

// Transposes the tiles of a block of columns, and computes its rows.
void KernelEmitter::emit_tile(const Context& context) {
  const std::size_t outer = kernel_.outer.size();
  const auto tile = static_cast<std::size_t>(analysis_.tile_variable);
  const std::int64_t pitch = static_cast<std::int64_t>(context.lanes) * context.copies;
  for (std::size_t k = 0; k < analysis_.values.size(); ++k) {
    if (!analysis_.values[k].is_tiled) continue;
    const auto id = static_cast<ValueId>(k);
    const Instruction& load = instruction(id);
    const std::string element = memory_name(load.dtype);
    Index start = load.index;
    start.coefficients[tile] = 0;  // the strip's start instead
    line(element + " " + tile_name(id) + "[" + number(pitch * context.lanes) +
         "] __attribute__((aligned(64)));");
    for (int copy = 0; copy < context.copies; ++copy) {
      line(vector_function(prelude_, "load_tile", element, context.lanes) + "(" + tile_name(id) +
           " + " + number(static_cast<std::int64_t>(copy) * context.lanes) + ", " + number(pitch) +
           ", " + pointer(load.buffer) + " + strip + " + affine(start, context, copy) + ", " +
           number(load.index.coefficient(outer - 1)) + ", rows, " +
           (context.count.empty() ? number(context.lanes) : context.count) + ");");
    }
  }
  const std::string i = variable_name(tile);
  open("for (long " + i + " = strip; " + i + " < strip + rows; ++" + i + ") {");
  for (std::size_t pass = 0; pass < kernel_.passes.size(); ++pass) {
    emit_level(static_cast<int>(pass), 0, Context{});
  }
  emit_point(context);
  close();
}

void KernelEmitter::emit_columns(const std::string& first, const std::string& last) {
  const std::string i = variable_name(kernel_.outer.size() - 1);
  if (analysis_.mode != KernelAnalysis::Mode::columns) {
    open("for (long " + i + " = " + first + "; " + i + " < " + last + "; ++" + i + ") {");
    emit_point(Context{});
    return close();
  }
  const int variable = static_cast<int>(kernel_.outer.size()) - 1;
  const int lanes = analysis_.lanes;
  const std::int64_t block = column_block();
  const std::int64_t rest = columns() % block;
  line("long " + i + " = " + first + ";");
  if (columns() >= block) {
    const std::string test = rest == 0 ? i : i + " + " + number(block - 1);
    open("for (; " + test + " < " + last + "; " + i + " += " + number(block) + ") {");
    emit_point({lanes, analysis_.copies, "", variable});
    close();
  }
  if (rest >= lanes) {
    const std::string test = rest % lanes == 0 ? i : i + " + " + number(lanes - 1);
    open("for (; " + test + " < " + last + "; " + i + " += " + number(lanes) + ") {");
    emit_point({lanes, 1, "", variable});
    close();
  }
  if (rest % lanes != 0) {
    open("if (" + i + " < " + last + ") {");
    if (kernel_.outer.size() == 1) {
      line("const long left = " + last + " - " + i + ";");
      emit_point({lanes, 1, "left", variable});
    } else {
      emit_point({lanes, 1, number(rest % lanes), variable});
    }
    close();
  }
}

void KernelEmitter::emit_point(const Context& context) {
  for (std::size_t pass = 0; pass < kernel_.passes.size(); ++pass) {
    emit_pass(static_cast<int>(pass), context);
  }
}

void KernelEmitter::emit_pass(int pass, const Context& context) {
  emit_level(pass, 1, context);
  const Pass& found = kernel_.passes[static_cast<std::size_t>(pass)];
  if (found.inner.empty()) return;
  const Context loop = loop_context(pass, context);
  const std::int64_t steps =
      found.inner.back() / (is_vector_pass(analysis_, found) ? loop.lanes * loop.copies : 1);
  uses_partial_sums_ = found.inner.size() > 1 || sum_block(pass, steps) != 0;
  begin_reductions(pass, loop);
  emit_inner(pass, 0, context);
  end_reductions(pass, loop);
}

KernelEmitter::Context KernelEmitter::loop_context(int pass, const Context& context) const {
  const Pass& found = kernel_.passes[static_cast<std::size_t>(pass)];
  if (!is_vector_pass(analysis_, found)) return context;
  const int copies = choose_copies(pass_weight(found), found.inner.back(), analysis_.lanes);
  return {analysis_.lanes, copies, "", vector_variable(kernel_, analysis_, found)};
}

// How many steps of a loop one partial sum takes; 0 if there is no need for partial sums.
std::int64_t KernelEmitter::sum_block(int pass, std::int64_t steps) const {
  const Pass& found = kernel_.passes[static_cast<std::size_t>(pass)];
  const bool has_sum = std::ranges::any_of(found.body, [](const Instruction& instruction) {
    return instruction.op == Op::reduce_sum && c10::isFloatingType(instruction.dtype);
  });
  if (!has_sum || steps <= 256) return 0;
  std::int64_t block = 64;
  while (block * block < steps) block *= 2;
  return block;
}

void KernelEmitter::emit_inner(int pass, std::size_t depth, const Context& context) {
  const Pass& found = kernel_.passes[static_cast<std::size_t>(pass)];
  if (depth + 1 == found.inner.size()) return emit_last_loop(pass, context);
  const std::string r = variable_name(kernel_.outer.size() + depth);
  open("for (long " + r + " = 0; " + r + " < " + number(found.inner[depth]) + "; ++" + r + ") {");
  emit_level(pass, static_cast<Level>(2 + depth), context);
  emit_inner(pass, depth + 1, context);
  close();
}

void KernelEmitter::emit_last_loop(int pass, const Context& context) {
  const Pass& found = kernel_.passes[static_cast<std::size_t>(pass)];
  if (is_vector_pass(analysis_, found)) return emit_vector_loop(pass, loop_context(pass, context));
  const std::int64_t size = found.inner.back();
  const std::int64_t block = sum_block(pass, size);
  const std::string r = variable_name(kernel_.outer.size() + found.inner.size() - 1);
  const Level level = static_cast<Level>(1 + found.inner.size());
  begin_scans(pass, context);
  if (block != 0) {
    open("for (long block = 0; block < " + number(size) + "; block += " + number(block) + ") {");
    line("const long stop = block + " + number(block) + " < " + number(size) + " ? block + " +
         number(block) + " : " + number(size) + ";");
  }
  if (uses_partial_sums_) begin_partial_sums(pass, context);
  open("for (long " + r + " = " + (block != 0 ? "block" : "0") + "; " + r + " < " +
       (block != 0 ? "stop" : number(size)) + "; ++" + r + ") {");
  emit_level(pass, level, context);
  close();
  if (uses_partial_sums_) end_partial_sums(pass, context);
  if (block != 0) close();
}

void KernelEmitter::emit_vector_loop(int pass, const Context& context) {
  const Pass& found = kernel_.passes[static_cast<std::size_t>(pass)];
  const std::int64_t size = found.inner.back();
  const std::int64_t step = static_cast<std::int64_t>(context.lanes) * context.copies;
  const std::int64_t main = size / step * step;
  const std::int64_t block = sum_block(pass, size / step) * step;
  const std::string r = variable_name(kernel_.outer.size() + found.inner.size() - 1);
  const Level level = static_cast<Level>(1 + found.inner.size());

  if (uses_partial_sums_ && block == 0) begin_partial_sums(pass, context);
  if (main > 0) {
    std::string start = "0";
    std::string stop = number(main);
    if (block != 0) {
      open("for (long block = 0; block < " + number(main) + "; block += " + number(block) + ") {");
      start = "block";
      if (main % block == 0) {
        stop = "block + " + number(block);
      } else {
        line("const long stop = block + " + number(block) + " < " + number(main) + " ? block + " +
             number(block) + " : " + number(main) + ";");
        stop = "stop";
      }
      begin_partial_sums(pass, context);
    }
    open("for (long " + r + " = " + start + "; " + r + " < " + stop + "; " + r +
         " += " + number(step) + ") {");
    emit_level(pass, level, context);
    close();
    if (block != 0) {
      end_partial_sums(pass, context);
      close();
    }
  }
  if (main < size) {
    if (block != 0) {
      open("{");
      begin_partial_sums(pass, context);
    }
    const std::int64_t vectors = (size - main) / context.lanes * context.lanes;
    if (vectors > 0) {
      open("for (long " + r + " = " + number(main) + "; " + r + " < " + number(main + vectors) +
           "; " + r + " += " + number(context.lanes) + ") {");
      emit_level(pass, level, {context.lanes, 1, "", context.variable});
      close();
    }
    if (main + vectors < size) {
      open("{");
      line("const long " + r + " = " + number(main + vectors) + ";");
      emit_level(pass, level, {context.lanes, 1, number(size - main - vectors), context.variable});
      close();
    }
    if (block != 0) {
      end_partial_sums(pass, context);
      close();
    }
  }
  if (uses_partial_sums_ && block == 0) end_partial_sums(pass, context);
}

}  // namespace assay::kernels
