#include "kernels/traffic.h"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

// The elements that one access touches: the points of the loops that its index depends on.
std::int64_t elements_touched(const Kernel& kernel, const Pass& pass, const Instruction& access,
                              const Buffer& buffer) {
  if (is_indirect(access.op)) {
    return std::min(points(kernel.outer) * points(pass.inner), buffer.elements);
  }
  std::int64_t touched = 1;
  for (std::size_t i = 0; i < kernel.outer.size(); ++i) {
    if (access.index.coefficient(i) != 0) touched *= kernel.outer[i];
  }
  for (std::size_t i = 0; i < pass.inner.size(); ++i) {
    if (access.index.coefficient(kernel.outer.size() + i) != 0) touched *= pass.inner[i];
  }
  return std::min(touched, buffer.elements);
}

std::int64_t element_bytes(c10::ScalarType dtype) {
  return static_cast<std::int64_t>(c10::elementSize(dtype));
}

}  // namespace

std::int64_t bytes_moved(const Kernel& kernel, const LoopProgram& program) {
  // By buffer and by direction: an element that several instructions load is in the cache.
  std::map<std::pair<BufferId, bool>, std::int64_t> touched;
  for (const Pass& pass : kernel.passes) {
    for (const Instruction& instruction : pass.body) {
      if (!reads_memory(instruction.op) && !writes_memory(instruction.op)) continue;
      const Buffer& buffer = program.buffers[instruction.buffer];
      if (buffer.kind == Buffer::Kind::scratch) continue;
      std::int64_t& most = touched[{instruction.buffer, writes_memory(instruction.op)}];
      most = std::max(
          most, elements_touched(kernel, pass, instruction, buffer) * element_bytes(buffer.dtype));
    }
  }
  std::int64_t bytes = 0;
  for (const auto& [access, count] : touched) bytes += count;
  return bytes;
}

std::int64_t bytes_moved(const ExternCall& call, const LoopProgram& program) {
  std::int64_t bytes = 0;
  for (const auto& operand : call.operands) {
    if (const auto* tensor = std::get_if<TensorRef>(&operand)) {
      bytes += points(tensor->sizes) * element_bytes(tensor->dtype);
    }
  }
  for (BufferId result : call.results) {
    if (result == kNoBuffer) continue;
    const Buffer& buffer = program.buffers[result];
    bytes += buffer.elements * element_bytes(buffer.dtype);
  }
  return bytes;
}

}  // namespace assay::kernels
