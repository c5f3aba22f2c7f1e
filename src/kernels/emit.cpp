#include "kernels/emit.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "kernels/emit/kernel_emitter.h"
#include "kernels/emit/prelude.h"
#include "kernels/emit/same_kernels.h"

namespace assay::kernels {

namespace {

constexpr std::string_view kKernelLine = "// kernel ";

std::string kernel_symbol(const std::string& name, std::set<std::string>& taken) {
  std::string symbol;
  for (const char c : name) {
    symbol += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  if (symbol.empty() || std::isdigit(static_cast<unsigned char>(symbol[0])) != 0) {
    symbol.insert(0, "kernel_");
  }
  const std::string base = symbol;
  for (int k = 1; !taken.insert(symbol).second; ++k) symbol = base + "_" + std::to_string(k);
  return symbol;
}

}  // namespace

EmittedProgram emit(const LoopProgram& program, const Target& target) {
  EmittedProgram result;
  Prelude prelude;
  std::set<std::string> symbols;
  for (const SameKernels& same : same_kernels(program)) {
    const SameKernels::Member& first = same.members.front();
    KernelEmitter emitter(same, program, target, prelude,
                          kernel_symbol(first.kernel->name, symbols));
    std::string text;
    const EmittedKernel made = emitter.emit(text);
    result.functions.push_back({made.symbol, std::move(text), made.buffers.size()});
    for (const SameKernels::Member& member : same.members) {
      result.kernels.resize(std::max(result.kernels.size(), member.number + 1));
      EmittedKernel& kernel = result.kernels[member.number] = made;
      for (BufferId& buffer : kernel.buffers) {
        const auto place = std::ranges::find(first.buffers, buffer) - first.buffers.begin();
        buffer = member.buffers[static_cast<std::size_t>(place)];
      }
    }
  }
  result.shared = prelude.text();
  result.code = code_of(result.shared, result.functions);
  return result;
}

std::string code_of(const std::string& shared, const std::vector<EmittedFunction>& functions) {
  std::string code = shared;
  for (const EmittedFunction& function : functions) code += '\n' + function.text;
  return code;
}

std::vector<std::string> split_units(std::string_view code, std::size_t count) {
  std::vector<std::string_view> kernels;
  std::string_view shared = code;
  const std::string marker = "\n" + std::string(kKernelLine);
  std::size_t at = code.find(marker);
  if (at != std::string_view::npos) shared = code.substr(0, at + 1);
  while (at != std::string_view::npos) {
    const std::size_t next = code.find(marker, at + 1);
    kernels.push_back(code.substr(at + 1, next == std::string_view::npos ? next : next - at));
    at = next;
  }
  count = std::min(count, kernels.size());
  if (count <= 1) return {std::string(code)};
  // The next kernel goes where least has gone so far.
  std::vector<std::string> units(count, std::string(shared));
  for (const std::string_view kernel : kernels) {
    *std::ranges::min_element(units, {}, &std::string::size) += kernel;
  }
  return units;
}

}  // namespace assay::kernels
