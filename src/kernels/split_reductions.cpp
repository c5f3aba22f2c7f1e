#include "kernels/split_reductions.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "kernels/loop_edit.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_split(
    {.name = "split_reductions",
     .room = "kernels",
     .description = "cuts reductions with few results into chunks"});

// A kernel with this many independent results keeps the threads busy.
constexpr std::int64_t kEnoughResults = 16;
// A reduction of fewer points is done before other threads have started.
constexpr std::int64_t kLongReduction = 65536;
constexpr std::int64_t kChunkPoints = 16384;
constexpr std::int64_t kMostChunks = 64;

bool can_be_combined(Op op) { return op >= Op::reduce_sum && op <= Op::reduce_xor; }

// The number of chunks: one that divides the loop, near to what is wanted.
std::optional<std::int64_t> even_chunks(std::int64_t size, std::int64_t wanted) {
  for (std::int64_t chunks = wanted; chunks >= std::max<std::int64_t>(wanted / 4, 2); --chunks) {
    if (size % chunks == 0) return chunks;
  }
  for (std::int64_t chunks = wanted + 1; chunks <= wanted * 4; ++chunks) {
    if (size % chunks == 0) return chunks;
  }
  return std::nullopt;
}

class ReductionSplitter {
 public:
  ReductionSplitter(const Kernel& kernel, LoopProgram& program)
      : kernel_(kernel), program_(program) {}

  // The kernels that do the same; empty if it is fine as it is, or cannot be cut.
  std::vector<Kernel> run() {
    join_loops(kernel_);
    if (!is_candidate()) return {};
    const auto loop = choose_loop();
    if (!loop) return {};
    make_partial(*loop);
    make_final();
    std::vector<Kernel> kernels;
    kernels.push_back(std::move(partial_));
    kernels.push_back(std::move(final_));
    return kernels;
  }

 private:
  struct ChosenLoop {
    std::size_t loop;
    std::int64_t chunks;
  };

  // One pass of reductions, then passes without loops that use them.
  bool is_candidate() const {
    if (kernel_.passes.size() < 2 || kernel_.passes[0].inner.empty() ||
        points(kernel_.outer) == 0 || points(kernel_.outer) >= kEnoughResults ||
        points(kernel_.passes[0].inner) < kLongReduction) {
      return false;
    }
    for (std::size_t i = 1; i < kernel_.passes.size(); ++i) {
      if (!kernel_.passes[i].inner.empty()) return false;
    }
    return std::ranges::all_of(kernel_.passes[0].body, [](const Instruction& instruction) {
      return !writes_memory(instruction.op) && !is_scan(instruction.op) &&
             (!is_reduction(instruction.op) || can_be_combined(instruction.op));
    });
  }

  std::optional<ChosenLoop> choose_loop() const {
    const Sizes& inner = kernel_.passes[0].inner;
    const std::int64_t wanted =
        std::clamp<std::int64_t>(points(inner) / kChunkPoints, 2, kMostChunks);
    for (std::size_t loop = 0; loop < inner.size(); ++loop) {
      if (const auto chunks = even_chunks(inner[loop], wanted)) return ChosenLoop{loop, *chunks};
    }
    return std::nullopt;
  }

  // Reduces chunk by chunk: the chunks are a new outer loop.
  void make_partial(const ChosenLoop& chosen) {
    partial_ = kernel_;
    partial_.passes.resize(1);
    Pass& pass = partial_.passes[0];
    const std::int64_t size = pass.inner[chosen.loop] / chosen.chunks;
    split_inner_loop(partial_, pass, chosen.loop, size);
    move_out(pass, chosen.loop);
    Pass& stores = partial_.passes.emplace_back();
    ValueId number = 0;
    for (const Instruction& instruction : partial_.passes[0].body) {
      if (is_reduction(instruction.op)) {
        partials_.emplace(number, new_buffer(instruction.dtype));
        Instruction& store = stores.body.emplace_back();
        store.op = Op::store;
        store.dtype = instruction.dtype;
        store.operands = {number};
        store.buffer = partials_.at(number);
        store.index = partial_index(partial_.outer.size());
      }
      ++number;
    }
  }

  // Inner loop `loop` becomes the last outer loop.
  void move_out(Pass& pass, std::size_t loop) {
    const std::size_t outer = partial_.outer.size();
    std::vector<Index> variables;
    for (std::size_t i = 0; i < outer; ++i) variables.push_back(variable_index(i));
    for (std::size_t i = 0; i < pass.inner.size(); ++i) {
      const std::size_t place = i == loop ? outer : outer + (i < loop ? i + 1 : i);
      variables.push_back(variable_index(place));
    }
    substitute_variables(pass, variables);
    partial_.outer.push_back(pass.inner[loop]);
    pass.inner.erase(pass.inner.begin() + static_cast<std::ptrdiff_t>(loop));
  }

  // Row-major over the first `rank` loops of the partial kernel.
  Index partial_index(std::size_t rank) const {
    Index index;
    index.coefficients.resize(rank, 0);
    std::int64_t stride = 1;
    for (std::size_t i = rank; i-- > 0;) {
      index.coefficients[i] = stride;
      stride *= partial_.outer[i];
    }
    return index;
  }

  BufferId new_buffer(c10::ScalarType dtype) {
    const auto id = static_cast<BufferId>(program_.buffers.size());
    Buffer& buffer = program_.buffers.emplace_back();
    buffer.name = kernel_.name + "_chunks_" + std::to_string(id);
    buffer.dtype = dtype;
    buffer.sizes = partial_.outer;
    buffer.strides = partial_index(partial_.outer.size()).coefficients;
    buffer.elements = points(partial_.outer);
    return id;
  }

  // Reduces the chunks' results, and goes on as the kernel did.
  void make_final() {
    final_ = kernel_;
    Pass& pass = final_.passes[0];
    pass.inner = {partial_.outer.back()};
    std::unordered_map<ValueId, ValueId> reductions;
    std::vector<Instruction> body;
    ValueId number = 0;
    for (const Instruction& instruction : kernel_.passes[0].body) {
      if (is_reduction(instruction.op)) {
        Instruction& load = body.emplace_back();
        load.op = Op::load;
        load.dtype = instruction.dtype;
        load.buffer = partials_.at(number);
        load.index = partial_index(partial_.outer.size());
        Instruction& reduce = body.emplace_back();
        reduce.op = instruction.op;
        reduce.dtype = instruction.dtype;
        reduce.operands = {static_cast<ValueId>(body.size() - 2)};
        reductions.emplace(number, static_cast<ValueId>(body.size() - 1));
      }
      ++number;
    }
    const ValueId before = number;
    pass.body = std::move(body);
    const auto after = static_cast<ValueId>(pass.body.size());
    for (std::size_t i = 1; i < final_.passes.size(); ++i) {
      for (Instruction& instruction : final_.passes[i].body) {
        for (ValueId& operand : instruction.operands) {
          if (operand == kNoValue) continue;
          operand = operand < before ? reductions.at(operand) : operand - before + after;
        }
      }
    }
  }

  Kernel kernel_;
  LoopProgram& program_;
  Kernel partial_;
  Kernel final_;
  std::unordered_map<ValueId, BufferId> partials_;  // by the reduction's number
};

}  // namespace

void split_reductions(LoopProgram& program, StepContext& context) {
  std::vector<Step> steps;
  steps.reserve(program.steps.size());
  for (Step& step : program.steps) {
    std::vector<Kernel> kernels;
    if (const auto* kernel = std::get_if<Kernel>(&step)) {
      kernels = ReductionSplitter(*kernel, program).run();
    }
    if (kernels.empty() || !context.may_apply()) {
      steps.push_back(std::move(step));
      continue;
    }
    context.applied(kernels[0]);
    for (Kernel& kernel : kernels) steps.emplace_back(std::move(kernel));
  }
  program.steps = std::move(steps);
}

}  // namespace assay::kernels
