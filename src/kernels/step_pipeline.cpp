#include "kernels/step_pipeline.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <mutex>

#include "assay/error.h"
#include "config/config.h"
#include "kernels/print.h"
#include "kernels/program_uses.h"
#include "kernels/verify.h"

namespace assay::kernels {

namespace {

// How often a step has been applied in this process.
std::int64_t count_application(std::string_view step) {
  static std::mutex mutex;
  static std::map<std::string, std::int64_t, std::less<>>& counts =
      *new std::map<std::string, std::int64_t, std::less<>>;
  const std::scoped_lock lock(mutex);
  return ++counts.emplace(step, 0).first->second;
}

// The setting kernel_fault: STEP:NUMBER makes that application of the step wrong, STEP:OPERATOR
// every one that has to do with a call of the operator.
bool is_faulty(std::string_view step, const Kernel& kernel) {
  const std::string_view fault = config::get<"kernel_fault">();
  if (fault.empty()) return false;
  const std::size_t colon = fault.find(':');
  if (colon == std::string_view::npos) {
    throw UserError("the setting kernel_fault is STEP:NUMBER or STEP:OPERATOR, not '" +
                    std::string(fault) + "'");
  }
  if (fault.substr(0, colon) != step) return false;
  const std::string_view what = fault.substr(colon + 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(what.data(), what.data() + what.size(), number);
  if (error == std::errc() && end == what.data() + what.size()) {
    return count_application(step) == number;
  }
  return std::ranges::any_of(
      kernel.nodes, [&](const graph::Node* node) { return node->target().base_name() == what; });
}

// Stores something else: a number that is one larger, the opposite of a bool.
void make_wrong(Kernel& kernel) {
  ValueId first = 0;
  for (Pass& pass : kernel.passes) {
    for (std::size_t i = 0; i < pass.body.size(); ++i) {
      Instruction& store = pass.body[i];
      if (store.op != Op::store || store.dtype == c10::ScalarType::Half ||
          store.dtype == c10::ScalarType::BFloat16) {
        continue;
      }
      Instruction one;
      one.op = Op::constant;
      one.dtype = store.dtype;
      one.constant = store.dtype == c10::ScalarType::Bool ? c10::Scalar(true) : c10::Scalar(1);
      Instruction wrong;
      wrong.op = store.dtype == c10::ScalarType::Bool ? Op::bitwise_xor : Op::add;
      wrong.dtype = store.dtype;
      const ValueId here = first + static_cast<ValueId>(i);
      wrong.operands = {store.operands[0], here};
      store.operands[0] = here + 1;
      pass.body.insert(pass.body.begin() + static_cast<std::ptrdiff_t>(i), {one, wrong});
      // Whatever stands after them has a number that is two larger.
      ValueId number = 0;
      for (Pass& other : kernel.passes) {
        for (Instruction& instruction : other.body) {
          if (number++ <= here + 2) continue;
          for (ValueId& operand : instruction.operands) {
            if (operand != kNoValue && operand >= here) operand += 2;
          }
        }
      }
      return;
    }
    first += static_cast<ValueId>(pass.body.size());
  }
}

}  // namespace

void StepContext::applied(Kernel& kernel) {
  if (is_faulty(name_, kernel)) make_wrong(kernel);
}

void StepPipeline::run(std::string_view name, LoopProgram& program, ProgramStep step) {
  graph::RunningPass running(name, options_);
  if (running.is_enabled()) {
    StepContext context(running, name);
    step(program, context);
  }
  running.finish([&] { verify(program); }, static_cast<std::int64_t>(program.steps.size()),
                 [&] { return print(program); });
}

}  // namespace assay::kernels
