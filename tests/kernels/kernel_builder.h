/// \file Builds a program of one kernel, instruction by instruction; for tests of the emitter.
#pragma once

#include <string>
#include <utility>

#include "kernels/ir.h"

namespace assay::kernels {

class KernelBuilder {
 public:
  using ScalarType = c10::ScalarType;

  BufferId buffer(ScalarType dtype, std::int64_t elements,
                  Buffer::Kind kind = Buffer::Kind::input) {
    Buffer result;
    result.kind = kind;
    result.name = "b" + std::to_string(program_.buffers.size());
    result.dtype = dtype;
    result.elements = elements;
    program_.buffers.push_back(result);
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }
  void pass(Sizes inner) { kernel_.passes.push_back({std::move(inner), {}}); }
  ValueId add(Op op, ScalarType dtype, std::initializer_list<ValueId> operands) {
    Instruction instruction;
    instruction.op = op;
    instruction.dtype = dtype;
    instruction.operands.assign(operands.begin(), operands.end());
    return append(std::move(instruction));
  }
  ValueId access(Op op, BufferId buffer, Sizes coefficients,
                 std::initializer_list<ValueId> operands = {}) {
    Instruction instruction;
    instruction.op = op;
    instruction.dtype = program_.buffers[buffer].dtype;
    instruction.buffer = buffer;
    instruction.index.coefficients = std::move(coefficients);
    instruction.operands.assign(operands.begin(), operands.end());
    return append(std::move(instruction));
  }
  ValueId index(Sizes coefficients) {
    Instruction instruction;
    instruction.op = Op::index;
    instruction.dtype = ScalarType::Long;
    instruction.index.coefficients = std::move(coefficients);
    return append(std::move(instruction));
  }
  ValueId constant(ScalarType dtype, const c10::Scalar& value) {
    Instruction instruction;
    instruction.op = Op::constant;
    instruction.dtype = dtype;
    instruction.constant = value;
    return append(std::move(instruction));
  }
  void check(ValueId condition, const std::string& message) {
    Instruction instruction;
    instruction.op = Op::check;
    instruction.dtype = ScalarType::Bool;
    instruction.operands = {condition};
    instruction.message = message;
    append(std::move(instruction));
  }
  LoopProgram finish(Sizes outer, Kernel::Vectorize vectorize) {
    kernel_.name = "test";
    kernel_.outer = std::move(outer);
    kernel_.vectorize = vectorize;
    program_.steps.emplace_back(std::move(kernel_));
    return std::move(program_);
  }

 private:
  ValueId append(Instruction instruction) {
    kernel_.passes.back().body.push_back(std::move(instruction));
    return next_++;
  }

  LoopProgram program_;
  Kernel kernel_;
  ValueId next_ = 0;
};

}  // namespace assay::kernels
