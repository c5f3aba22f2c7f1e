#include "kernels/emit/same_kernels.h"

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_map>

#include "kernels/instructions.h"

namespace assay::kernels {

namespace {

// A text that is the same for kernels that are: everything the emitter looks at but names.
class Fingerprint {
 public:
  explicit Fingerprint(const LoopProgram& program) : program_(program) {}

  std::string of(SameKernels::Member& member) {
    text_.clear();
    const Kernel& kernel = *member.kernel;
    add(static_cast<std::int64_t>(kernel.vectorize));
    add(kernel.outer);
    for (const Pass& pass : kernel.passes) {
      text_ += '\n';
      add(pass.inner);
      for (const Instruction& instruction : pass.body) add(instruction, member.buffers);
    }
    return text_;
  }

 private:
  void add(std::int64_t number) { text_ += std::to_string(number) + ' '; }
  void add(const Sizes& numbers) {
    text_ += '[';
    for (const std::int64_t number : numbers) add(number);
    text_ += ']';
  }
  void add(const Index& index) {
    add(index.offset);
    std::size_t count = index.coefficients.size();
    while (count > 0 && index.coefficients[count - 1] == 0) --count;
    add(Sizes(index.coefficients.begin(),
              index.coefficients.begin() + static_cast<std::ptrdiff_t>(count)));
  }

  void add(const Instruction& instruction, std::vector<BufferId>& buffers) {
    text_ += '\n';
    add(static_cast<std::int64_t>(instruction.op));
    add(static_cast<std::int64_t>(instruction.dtype));
    for (const ValueId operand : instruction.operands) add(operand);
    text_ += ';';
    if (touches_memory(instruction.op)) add_buffer(instruction.buffer, buffers);
    add(instruction.index);
    for (const Condition& condition : instruction.conditions) {
      add(condition.index);
      add(condition.lower);
      add(condition.upper);
    }
    if (instruction.op == Op::constant) add_constant(instruction.constant);
    text_ += instruction.message;
  }

  void add_buffer(BufferId id, std::vector<BufferId>& buffers) {
    auto place = std::ranges::find(buffers, id);
    if (place == buffers.end()) place = buffers.insert(place, id);
    add(place - buffers.begin());
    const Buffer& buffer = program_.buffers[id];
    add(static_cast<std::int64_t>(buffer.dtype));
    if (buffer.kind == Buffer::Kind::scratch) add(buffer.elements);
  }

  // By its bits: NaNs and zeros have several.
  void add_constant(const c10::Scalar& constant) {
    add(static_cast<std::int64_t>(constant.type()));
    if (constant.isFloatingPoint()) {
      add(std::bit_cast<std::int64_t>(constant.toDouble()));
    } else {
      add(constant.isBoolean() ? static_cast<std::int64_t>(constant.toBool()) : constant.toLong());
    }
  }

  const LoopProgram& program_;
  std::string text_;
};

}  // namespace

std::vector<SameKernels> same_kernels(const LoopProgram& program) {
  std::vector<SameKernels> groups;
  std::unordered_map<std::string, std::size_t> known;
  Fingerprint fingerprint(program);
  std::size_t number = 0;
  for (const Step& step : program.steps) {
    const Kernel* kernel = std::get_if<Kernel>(&step);
    if (kernel == nullptr) continue;
    SameKernels::Member member{.kernel = kernel, .number = number++};
    const auto [found, is_new] = known.emplace(fingerprint.of(member), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].members.push_back(std::move(member));
  }
  return groups;
}

}  // namespace assay::kernels
