#include "kernels/print.h"

#include <sstream>

#include "graph/dtype_names.h"
#include "graph/print.h"
#include "kernels/instructions.h"

namespace assay::kernels {

namespace {

std::string list(const Sizes& sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  }
  return text + "]";
}

std::string short_dtype(c10::ScalarType dtype) {
  return std::string(graph::dtype_abbreviation(dtype));
}

// Outer loops are i0, i1, ...; inner ones r0, r1, ...
std::string affine(const Index& index, std::size_t outer) {
  std::string text;
  for (std::size_t i = 0; i < index.coefficients.size(); ++i) {
    const std::int64_t factor = index.coefficients[i];
    if (factor == 0) continue;
    const std::string name = i < outer ? "i" + std::to_string(i) : "r" + std::to_string(i - outer);
    text += factor < 0 ? (text.empty() ? "-" : " - ") : (text.empty() ? "" : " + ");
    if (factor != 1 && factor != -1) text += std::to_string(std::abs(factor)) + "*";
    text += name;
  }
  if (text.empty()) return std::to_string(index.offset);
  if (index.offset > 0) text += " + " + std::to_string(index.offset);
  if (index.offset < 0) text += " - " + std::to_string(-index.offset);
  return text;
}

std::string conditions_text(const std::vector<Condition>& conditions, std::size_t outer) {
  std::string text;
  for (const Condition& condition : conditions) {
    if (!text.empty()) text += " and ";
    text += std::to_string(condition.lower) + " <= " + affine(condition.index, outer) + " < " +
            std::to_string(condition.upper);
  }
  return text;
}

const char* kind_name(Buffer::Kind kind) {
  switch (kind) {
    case Buffer::Kind::input:
      return "input";
    case Buffer::Kind::intermediate:
      return "intermediate";
    case Buffer::Kind::result:
      return "result";
    case Buffer::Kind::scratch:
      return "scratch";
  }
  return "?";
}

std::string describe(const TensorRef& ref, const LoopProgram& program) {
  std::string text = program.buffers[ref.buffer].name + list(ref.sizes) + list(ref.strides);
  if (ref.offset != 0) text += "+" + std::to_string(ref.offset);
  return text;
}

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, const LoopProgram& program, std::ostream& out)
      : kernel_(kernel), program_(program), out_(out) {}

  void run() {
    out_ << kernel_.name << ": Kernel(outer=" << list(kernel_.outer);
    if (kernel_.vectorize == Kernel::Vectorize::inner) out_ << ", vectors=inner";
    if (kernel_.vectorize == Kernel::Vectorize::outer) out_ << ", vectors=outer";
    if (kernel_.is_parallel) out_ << ", parallel";
    out_ << ")\n";
    out_ << "  nodes =";
    for (const graph::Node* node : kernel_.nodes) out_ << ' ' << node->name();
    out_ << '\n';
    for (const Pass& pass : kernel_.passes) {
      out_ << "  pass over " << (pass.inner.empty() ? "one point" : list(pass.inner)) << '\n';
      for (const Instruction& instruction : pass.body) print(instruction);
    }
  }

 private:
  void print(const Instruction& instruction) {
    const std::size_t outer = kernel_.outer.size();
    out_ << "    ";
    if (!has_no_result(instruction.op)) out_ << 'v' << next_ << " = ";
    ++next_;
    out_ << to_string(instruction.op) << '(';
    bool is_first = true;
    const auto argument = [&](const std::string& text) {
      out_ << (is_first ? "" : ", ") << text;
      is_first = false;
    };
    if (touches_memory(instruction.op)) {
      argument(program_.buffers[instruction.buffer].name + "[" + affine(instruction.index, outer) +
               "]");
    }
    if (instruction.op == Op::constant) argument(constant(instruction));
    if (instruction.op == Op::index) argument(affine(instruction.index, outer));
    for (const ValueId operand : instruction.operands) argument("v" + std::to_string(operand));
    if (!instruction.conditions.empty()) {
      argument("if " + conditions_text(instruction.conditions, outer));
    }
    if (instruction.op == Op::check) argument("\"" + instruction.message + "\"");
    out_ << ')';
    if (!has_no_result(instruction.op)) out_ << ": " << short_dtype(instruction.dtype);
    out_ << '\n';
  }

  static std::string constant(const Instruction& instruction) {
    std::ostringstream text;
    if (c10::isFloatingType(instruction.dtype)) {
      text.precision(17);
      text << instruction.constant.toDouble();
    } else {
      text << instruction.constant.to<std::int64_t>();
    }
    return text.str();
  }

  const Kernel& kernel_;
  const LoopProgram& program_;
  std::ostream& out_;
  ValueId next_ = 0;
};

void print_call(const ExternCall& call, const LoopProgram& program, std::ostream& out) {
  out << call.node->name() << ": ExternCall(" << call.node->target().name() << ")\n";
  out << "  reason = " << call.reason << '\n';
  out << "  reads =";
  for (const auto& operand : call.operands) {
    if (const auto* ref = std::get_if<TensorRef>(&operand)) {
      out << ' ' << describe(*ref, program);
    } else {
      out << ' ' << std::get<const graph::Node*>(operand)->name();
    }
  }
  out << '\n';
  if (!call.writes.empty()) {
    out << "  writes =";
    for (const BufferId id : call.writes) out << ' ' << program.buffers[id].name;
    out << '\n';
  }
  if (!call.results.empty()) {
    out << "  results =";
    for (const BufferId id : call.results) out << ' ' << program.buffers[id].name;
    out << '\n';
  }
}

}  // namespace

std::string print(const Kernel& kernel, const LoopProgram& program) {
  std::ostringstream out;
  KernelPrinter(kernel, program, out).run();
  return out.str();
}

std::string print(const LoopProgram& program) {
  std::ostringstream out;
  out << program.name << ": " << program.buffers.size() << " buffers, " << program.steps.size()
      << " steps\n\n";
  for (const Buffer& buffer : program.buffers) {
    out << buffer.name << ": " << kind_name(buffer.kind) << ' ' << short_dtype(buffer.dtype)
        << list(buffer.sizes) << list(buffer.strides) << '\n';
  }
  for (const Step& step : program.steps) {
    out << '\n';
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      KernelPrinter(*kernel, program, out).run();
    } else {
      print_call(std::get<ExternCall>(step), program, out);
    }
  }
  out << "\noutputs =";
  for (const ProgramOutput& output : program.outputs) {
    if (const auto* ref = std::get_if<TensorRef>(&output)) {
      out << ' ' << describe(*ref, program);
    } else if (const auto* node = std::get_if<const graph::Node*>(&output)) {
      out << ' ' << (*node)->name();
    } else {
      out << " constant";
    }
  }
  out << '\n';
  return out.str();
}

}  // namespace assay::kernels
