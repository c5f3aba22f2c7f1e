#include "kernels/report.h"

#include <algorithm>
#include <array>

namespace assay::kernels {

namespace {

std::string loops_text(const Sizes& sizes) {
  std::string text = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  }
  return text + "]";
}

std::int64_t count_points(const Kernel& kernel) {
  std::int64_t outer = 1;
  for (std::int64_t size : kernel.outer) outer *= size;
  std::int64_t most = outer;
  for (const Pass& pass : kernel.passes) {
    std::int64_t points = outer;
    for (std::int64_t size : pass.inner) points *= size;
    most = std::max(most, points);
  }
  return most;
}

std::string describe_kernel(const Kernel& kernel) {
  static constexpr std::array kVectors = {"", ", vectors of inner loops",
                                          ", vectors of outer loops"};
  std::string text = "kernel " + kernel.name + ": loops " + loops_text(kernel.outer);
  for (const Pass& pass : kernel.passes) {
    if (!pass.inner.empty()) text += ", pass over " + loops_text(pass.inner);
  }
  text += kVectors.at(static_cast<std::size_t>(kernel.vectorize));
  return text + (kernel.is_parallel ? ", threads" : "");
}

// Products and convolutions are ATen's by design: nothing is lost there.
bool is_meant_for_aten(const std::string& target) {
  static constexpr std::array kMeant = {"mm", "addmm",       "bmm",       "baddbmm",
                                        "mv", "convolution", "attention", "linear"};
  return std::ranges::any_of(
      kMeant, [&](const char* name) { return target.find(name) != std::string::npos; });
}

}  // namespace

std::string schedule_text(const LoopProgram& program) {
  std::string text = program.name + ": " + std::to_string(program.steps.size()) + " steps";
  std::size_t number = 0;
  for (const Step& step : program.steps) {
    text += "\n  " + std::to_string(++number) + ". ";
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      text += describe_kernel(*kernel);
    } else {
      const auto& call = std::get<ExternCall>(step);
      text += "extern " + call.node->target().name() + ": " + call.node->name();
    }
  }
  return text;
}

std::string perf_hints_text(const LoopProgram& program) {
  constexpr std::int64_t kWorthVectors = 64;
  std::string text;
  const auto add = [&](const std::string& line) { text += (text.empty() ? "" : "\n") + line; };
  for (const Step& step : program.steps) {
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      if (kernel->vectorize == Kernel::Vectorize::none && count_points(*kernel) >= kWorthVectors) {
        add("kernel " + kernel->name +
            " does not use vectors: no loop runs over adjacent elements");
      }
      continue;
    }
    const auto& call = std::get<ExternCall>(step);
    if (call.reason.empty() || is_meant_for_aten(call.node->target().name())) continue;
    add(call.node->name() + " = " + call.node->target().name() +
        " is a call of ATen: " + call.reason);
  }
  return text;
}

}  // namespace assay::kernels
