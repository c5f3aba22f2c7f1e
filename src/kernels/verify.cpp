#include "kernels/verify.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "assay/error.h"
#include "kernels/index_range.h"
#include "kernels/instructions.h"
#include "kernels/tensor_ref.h"

namespace assay::kernels {

namespace {

using c10::ScalarType;

std::size_t operand_count(const Instruction& instruction) { return instruction.operands.size(); }

class KernelVerifier {
 public:
  KernelVerifier(const Kernel& kernel, const LoopProgram& program)
      : kernel_(kernel), program_(program) {}

  void run() {
    for (pass_ = 0; pass_ < kernel_.passes.size(); ++pass_) {
      const Pass& pass = kernel_.passes[pass_];
      loops_ = kernel_.outer;
      loops_.append(pass.inner.begin(), pass.inner.end());
      for (const Instruction& instruction : pass.body) {
        check_operands(instruction, pass);
        check_dtypes(instruction);
        if (touches_memory(instruction.op)) check_access(instruction);
        defined_.push_back({&instruction, pass_});
      }
    }
  }

 private:
  struct Definition {
    const Instruction* instruction;
    std::size_t pass;
  };

  [[noreturn]] void fail(const Instruction& instruction, const std::string& what) const {
    throw InternalError("kernel " + kernel_.name + ", pass " + std::to_string(pass_) + ", v" +
                        std::to_string(defined_.size()) + " = " + to_string(instruction.op) + ": " +
                        what);
  }

  void check_operands(const Instruction& instruction, const Pass& pass) const {
    for (const ValueId operand : instruction.operands) {
      if (operand >= defined_.size()) fail(instruction, "a value is used before it is defined");
      const Definition& definition = defined_[operand];
      const Op op = definition.instruction->op;
      if (has_no_result(op)) fail(instruction, "an operand has no value");
      if (definition.pass == pass_) {
        if (is_reduction(op)) fail(instruction, "a reduction is used before its pass has ended");
      } else if (!kernel_.passes[definition.pass].inner.empty() && !is_reduction(op)) {
        fail(instruction, "a value of an earlier pass's inner loops is used");
      }
    }
    if (is_scan(instruction.op) && pass.inner.empty()) fail(instruction, "a scan without a loop");
    if (is_reduction(instruction.op) && pass.inner.empty()) {
      fail(instruction, "a reduction without a loop");
    }
  }

  ScalarType dtype(const Instruction& instruction, std::size_t operand) const {
    return defined_[instruction.operands[operand]].instruction->dtype;
  }

  void expect(const Instruction& instruction, std::size_t operand, ScalarType wanted) const {
    if (operand >= operand_count(instruction)) fail(instruction, "an operand is missing");
    const ScalarType found = dtype(instruction, operand);
    if (found == wanted) return;
    fail(instruction, "operand " + std::to_string(operand) + " is " + c10::toString(found) +
                          " instead of " + c10::toString(wanted));
  }

  void check_dtypes(const Instruction& instruction) const {
    const ScalarType own = instruction.dtype;
    switch (instruction.op) {
      case Op::load:
        if (!instruction.conditions.empty()) expect(instruction, 0, own);
        return;
      case Op::load_indirect:
        expect(instruction, 0, ScalarType::Long);
        if (operand_count(instruction) > 1) {
          expect(instruction, 1, ScalarType::Bool);
          expect(instruction, 2, own);
        }
        return;
      case Op::store:
        expect(instruction, 0, own);
        return;
      case Op::store_indirect:
      case Op::add_indirect:
        expect(instruction, 0, own);
        expect(instruction, 1, ScalarType::Long);
        return;
      case Op::constant:
        return;
      case Op::index:
        if (own != ScalarType::Long) fail(instruction, "an index is int64");
        return;
      case Op::condition:
        if (own != ScalarType::Bool) fail(instruction, "a condition is bool");
        return;
      case Op::cast:
        if (operand_count(instruction) != 1) fail(instruction, "an operand is missing");
        return;
      case Op::bitcast:
        if (operand_count(instruction) != 1) fail(instruction, "an operand is missing");
        if (c10::elementSize(dtype(instruction, 0)) != c10::elementSize(own)) {
          fail(instruction, "the widths differ");
        }
        return;
      case Op::where:
        expect(instruction, 0, ScalarType::Bool);
        expect(instruction, 1, own);
        expect(instruction, 2, own);
        return;
      case Op::check:
      case Op::logical_not:
      case Op::reduce_any:
      case Op::reduce_all:
        expect(instruction, 0, ScalarType::Bool);
        return;
      case Op::reduce_argmax:
      case Op::reduce_argmin:
        check_arithmetic(instruction, dtype(instruction, 0));
        expect(instruction, 1, ScalarType::Long);
        if (own != ScalarType::Long) fail(instruction, "a position is int64");
        return;
      case Op::isnan:
      case Op::isinf:
      case Op::isfinite:
      case Op::signbit:
        if (!c10::isFloatingType(dtype(instruction, 0))) fail(instruction, "not floating point");
        check_arithmetic(instruction, dtype(instruction, 0));
        return;
      case Op::eq:
      case Op::ne:
      case Op::lt:
      case Op::le:
      case Op::gt:
      case Op::ge:
        if (own != ScalarType::Bool) fail(instruction, "a comparison is bool");
        check_arithmetic(instruction, dtype(instruction, 0));
        expect(instruction, 1, dtype(instruction, 0));
        return;
      default:
        check_arithmetic(instruction, own);
        for (std::size_t i = 0; i < operand_count(instruction); ++i) expect(instruction, i, own);
    }
  }

  void check_arithmetic(const Instruction& instruction, ScalarType dtype) const {
    if (operand_count(instruction) == 0) fail(instruction, "an operand is missing");
    if (c10::isReducedFloatingType(dtype)) fail(instruction, "arithmetic on half or bfloat16");
    if (!is_kernel_dtype(dtype)) fail(instruction, "a dtype that kernels do not compute with");
    const bool is_integer = c10::isIntegralType(dtype, true);
    if (is_integer && instruction.op == Op::div) fail(instruction, "true division of integers");
  }

  void check_access(const Instruction& instruction) const {
    if (instruction.buffer >= program_.buffers.size()) fail(instruction, "no such buffer");
    const Buffer& buffer = program_.buffers[instruction.buffer];
    if (buffer.dtype != instruction.dtype) {
      fail(instruction, "the dtype is not that of buffer " + buffer.name);
    }
    const std::size_t rank = kernel_.outer.size();
    for (std::size_t i = loops_.size(); i < instruction.index.coefficients.size(); ++i) {
      if (instruction.index.coefficients[i] != 0) fail(instruction, "an index of no loop");
    }
    if (buffer.kind == Buffer::Kind::scratch) {
      for (std::size_t i = 0; i < rank; ++i) {
        if (instruction.index.coefficient(i) != 0) {
          fail(instruction, "a scratch buffer is indexed by an outer loop");
        }
      }
    }
    // What is added to an indirect access is known at run time only.
    if (instruction.op != Op::load && instruction.op != Op::store) return;
    if (element_count(loops_) == 0) return;
    const auto range = index_range(instruction.index, loops_, instruction.conditions);
    if (!range) return;  // no point fulfills the conditions
    if (range->lower < 0 || range->upper >= buffer.elements) {
      fail(instruction, "elements " + std::to_string(range->lower) + " to " +
                            std::to_string(range->upper) + " of " + buffer.name + ", which has " +
                            std::to_string(buffer.elements));
    }
  }

  const Kernel& kernel_;
  const LoopProgram& program_;
  std::vector<Definition> defined_;
  std::size_t pass_ = 0;
  Sizes loops_;
};

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const LoopProgram& program)
      : program_(program), is_written_(program.buffers.size(), false) {
    // What has no elements needs no writer.
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      if (program.buffers[i].elements == 0) is_written_[i] = true;
    }
  }

  void run() {
    for (const BufferId input : program_.inputs) {
      if (input != kNoBuffer) is_written_.at(input) = true;
    }
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      if (const auto* kernel = std::get_if<Kernel>(&program_.steps[i])) {
        KernelVerifier(*kernel, program_).run();
        check_order(*kernel, i);
      } else {
        check_call(std::get<ExternCall>(program_.steps[i]));
      }
    }
    for (const ProgramOutput& output : program_.outputs) {
      if (const auto* ref = std::get_if<TensorRef>(&output)) check_ref(*ref, "an output");
    }
  }

 private:
  void check_order(const Kernel& kernel, std::size_t step) {
    for (const Pass& pass : kernel.passes) {
      for (const Instruction& instruction : pass.body) {
        if (!touches_memory(instruction.op)) continue;
        const Buffer& buffer = program_.buffers[instruction.buffer];
        if (buffer.kind == Buffer::Kind::scratch) {
          const auto [owner, is_new] = scratch_owner_.emplace(instruction.buffer, step);
          if (!is_new && owner->second != step) {
            throw InternalError("scratch buffer " + buffer.name + " is used by two kernels");
          }
        }
        // Of a buffer without elements nothing is read, and nothing writes it.
        if (reads_memory(instruction.op) && !is_written_[instruction.buffer] &&
            buffer.elements != 0) {
          throw InternalError("kernel " + kernel.name + " reads " + buffer.name +
                              " before it is written");
        }
        if (writes_memory(instruction.op)) is_written_[instruction.buffer] = true;
      }
    }
  }

  void check_ref(const TensorRef& ref, const std::string& who) const {
    const Buffer& buffer = program_.buffers.at(ref.buffer);
    if (element_count(ref) == 0) return;
    if (!is_written_[ref.buffer]) {
      throw InternalError(who + " reads " + buffer.name + " before it is written");
    }
    const Extent reach = extent(ref);
    if (reach.begin < 0 || reach.end > buffer.elements) {
      throw InternalError(who + " reaches beyond " + buffer.name);
    }
  }

  void check_call(const ExternCall& call) {
    for (const auto& operand : call.operands) {
      if (const auto* ref = std::get_if<TensorRef>(&operand)) check_ref(*ref, call.node->name());
    }
    for (const BufferId result : call.results) is_written_.at(result) = true;
    for (const BufferId written : call.writes) is_written_.at(written) = true;
  }

  const LoopProgram& program_;
  std::vector<bool> is_written_;
  std::unordered_map<BufferId, std::size_t> scratch_owner_;
};

}  // namespace

void verify(const LoopProgram& program) { ProgramVerifier(program).run(); }

}  // namespace assay::kernels
