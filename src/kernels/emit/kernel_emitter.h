/// \file Writes one kernel. The parts lie in files of their own: loops (loops.cpp), loads and
/// stores (accesses.cpp), reductions and scans (reductions.cpp), everything else
/// (kernel_emitter.cpp).
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/emit.h"
#include "kernels/emit/analysis.h"
#include "kernels/emit/prelude.h"
#include "kernels/emit/same_kernels.h"
#include "kernels/ir.h"

namespace assay::kernels {

class KernelEmitter {
 public:
  /// Writes the first of some kernels that are the same, for all of them.
  KernelEmitter(const SameKernels& same, const LoopProgram& program, const Target& target,
                Prelude& prelude, std::string symbol);

  /// Appends the kernel's text to `code`.
  EmittedKernel emit(std::string& code);

 private:
  /// How the instructions at one place are written: how many vectors side by side, and how many
  /// lanes of them are in use.
  struct Context {
    int lanes = 1;
    int copies = 1;
    std::string count;  ///< The number of lanes in use, if not all of them are; `copies` is then 1.
    int variable = -1;  ///< The variable that the lanes follow.
  };
  struct Value {
    std::vector<std::string> names;   ///< One per copy if it is varying, else one.
    std::vector<std::string> totals;  ///< Of a sum: what its partial sums are added to.
  };

  // Text.
  void line(const std::string& text);
  void open(const std::string& text);
  void close();
  std::string affine(const Index& index, const Context& context, int copy) const;
  std::string condition(const Condition& condition, const Context& context) const;
  /// The lanes for which a condition holds, as a mask of i32.
  std::string within(const Condition& condition, const Context& context, int copy);
  std::string variable_name(std::size_t variable) const;
  std::string pointer(BufferId buffer) const;

  // Operands. Scalars are repeated for all lanes where a vector is needed.
  const Instruction& instruction(ValueId id) const { return *analysis_.values[id].instruction; }
  bool is_varying(ValueId id) const { return analysis_.values[id].is_varying; }
  std::string scalar(ValueId id) const;
  std::string vector(ValueId id, const Context& context, int copy);
  std::string mask(ValueId id, int width, const Context& context, int copy);
  /// `vector`, or `mask` of the width for a bool; what an instruction of `lanes` lanes needs.
  std::string operand(ValueId id, const Context& context, int copy, int lanes, int width);
  std::string first_lanes(int width, const Context& context);
  /// Declares the value; `expression` is called for each copy, with 1 lane if it is not varying.
  template <typename Expression>
  void define(ValueId id, const Context& context, Expression&& expression);
  std::string value_type(ValueId id, int lanes);
  std::string value_name(ValueId id) const;

  // Instructions.
  void emit_level(int pass, Level level, const Context& context);
  void emit_instruction(ValueId id, const Context& context);
  bool emit_side_by_side(ValueId id, const Context& context);
  std::string expression(ValueId id, const Context& context, int copy, int lanes);
  std::string index_comparison(ValueId id, const Context& context, int copy);
  std::string cast(ValueId id, const Context& context, int copy, int lanes);
  void emit_check(ValueId id, const Context& context);

  // accesses.cpp
  void emit_load(ValueId id, const Context& context);
  std::string range_of_lanes(const std::vector<const Condition*>& conditions,
                             const Context& context, int copy);
  void emit_load_indirect(ValueId id, const Context& context);
  std::pair<std::string, ValueId> split_offset(ValueId offset) const;
  void emit_store(ValueId id, const Context& context);
  void emit_store_indirect(ValueId id, const Context& context);
  std::string address(ValueId id, const Context& context, int copy) const;
  std::string loaded(ValueId id, const std::string& memory_value, int lanes);
  std::string stored(ValueId value, c10::ScalarType dtype, const Context& context, int copy,
                     int lanes);
  std::string load_vector(ValueId id, const std::string& address, std::int64_t stride,
                          const Context& context);
  void store_vector(BufferId buffer, const std::string& address, std::int64_t stride,
                    const std::string& value, const Context& context);
  std::string tile_name(ValueId id) const;
  bool is_scratch(BufferId buffer) const;
  std::int64_t scratch_elements(BufferId buffer) const;

  // reductions.cpp
  void begin_reductions(int pass, const Context& context);
  void begin_partial_sums(int pass, const Context& context);
  void end_partial_sums(int pass, const Context& context);
  void end_reductions(int pass, const Context& context);
  void end_arg_reduction(ValueId id, int lanes);
  void begin_scans(int pass, const Context& context);
  void emit_reduction(ValueId id, const Context& context);
  void emit_arg_step(ValueId id, const Context& context, int copy, int lanes, bool is_masked);
  void emit_scan(ValueId id, const Context& context);
  std::vector<std::string> scan_states(ValueId id, const Context& context) const;
  bool has_partial_sums(ValueId id) const;
  void declare_accumulators(ValueId id, const std::string& prefix, const Context& context);
  void declare_totals(ValueId id, const Context& context);
  void end_totals(ValueId id, int lanes);
  std::string total_element(ValueId id) const;
  std::string converted(const std::string& sum, const std::string& element, ValueId id, int lanes);
  int accumulator_lanes(ValueId id, const Context& context) const;
  int accumulator_width(ValueId id) const;
  std::string accumulator_element(ValueId id, int lanes) const;
  std::string combine(Op step, ValueId id, int lanes, const std::string& a, const std::string& b);
  /// A function that combines the lanes of a vector.
  std::string fold(Op step, const std::string& element, int lanes);
  /// A function that tells whether a value and its position are to replace the best so far.
  std::string better(Op op, const std::string& element, const std::string& position, int lanes);
  std::string position_element(ValueId id, int lanes) const;

  // loops.cpp
  void emit_declarations(const std::vector<BufferId>& buffers);
  void emit_rows();
  void emit_tiles();
  void emit_tile(const Context& context);
  void emit_columns(const std::string& first, const std::string& last);
  void emit_point(const Context& context);
  void emit_pass(int pass, const Context& context);
  void emit_inner(int pass, std::size_t depth, const Context& context);
  void emit_last_loop(int pass, const Context& context);
  void emit_vector_loop(int pass, const Context& context);
  Context loop_context(int pass, const Context& context) const;
  std::int64_t sum_block(int pass, std::int64_t steps) const;
  template <typename Visit>
  void for_each_value(int pass, Visit&& visit) {
    for (std::size_t id = first_value_[static_cast<std::size_t>(pass)];
         id < first_value_[static_cast<std::size_t>(pass) + 1]; ++id) {
      visit(static_cast<ValueId>(id));
    }
  }
  std::int64_t columns() const { return kernel_.outer.empty() ? 1 : kernel_.outer.back(); }
  std::int64_t column_block() const {
    return static_cast<std::int64_t>(analysis_.copies) * column_lanes();
  }
  int column_lanes() const {
    return analysis_.mode == KernelAnalysis::Mode::columns ? analysis_.lanes : 1;
  }
  void emit_comment();

  const SameKernels& same_;
  const Kernel& kernel_;
  const LoopProgram& program_;
  Prelude& prelude_;
  std::string symbol_;
  KernelAnalysis analysis_;
  std::vector<std::size_t> first_value_;  ///< Of each pass.
  std::vector<Value> values_;
  std::vector<std::string> pointers_;  ///< By BufferId; empty if the kernel does not use it.
  std::vector<int> check_number_;      ///< By ValueId.
  bool uses_partial_sums_ = false;     ///< In the pass that is being written.
  std::string code_;
  int indent_ = 0;
};

}  // namespace assay::kernels
