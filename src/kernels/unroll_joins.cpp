#include "kernels/unroll_joins.h"

#include <algorithm>
#include <optional>

#include "kernels/inline_producers.h"
#include "kernels/merge_pair.h"
#include "kernels/program_uses.h"
#include "observe/observe.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_unroll(
    {.name = "unroll_joins",
     .room = "kernels",
     .description = "computes the parts of a joined tensor where they are read"});

constexpr std::size_t kMostParts = 4;
constexpr std::size_t kMostInstructions = 200;
// Along neighbors in memory a part must still be a few vectors long.
constexpr std::int64_t kShortestPart = 16;

// A buffer that is cut into `count` parts of `length` along one dimension.
struct Cut {
  std::int64_t stride = 0;  ///< Of the dimension.
  std::int64_t size = 0;
  std::int64_t length = 0;

  std::int64_t block() const { return stride * size; }  ///< The next larger stride.
  std::int64_t block_of_part() const { return stride * length; }
};

// An index as digits: how far it reaches along the smaller strides and along the dimension itself.
struct Digits {
  std::int64_t below = 0;
  std::int64_t begin = 0;  ///< The first position along the dimension.
  std::int64_t last = 0;   ///< The last one.
};

std::optional<Digits> digits_of(const Index& index, const Sizes& loops, const Cut& cut) {
  if (index.offset < 0) return std::nullopt;
  Digits digits{.below = index.offset % cut.stride,
                .begin = index.offset % cut.block() / cut.stride};
  digits.last = digits.begin;
  for (std::size_t loop = 0; loop < loops.size(); ++loop) {
    const std::int64_t stride = index.coefficient(loop);
    const std::int64_t steps = loops[loop] - 1;
    if (stride == 0 || steps == 0) continue;
    if (stride < 0) return std::nullopt;
    if (stride < cut.stride) {
      digits.below += stride * steps;
    } else if (stride % cut.block() != 0) {
      if (stride % cut.stride != 0) return std::nullopt;
      digits.last += stride / cut.stride * steps;
    }
  }
  // Nothing may carry into the next digit.
  if (digits.below >= cut.stride || digits.last >= cut.size) return std::nullopt;
  return digits;
}

// The same place in a part that starts at `begin` and lies in memory by itself.
Index in_part(const Index& index, const Cut& cut, std::int64_t begin) {
  const auto shrink = [&](std::int64_t stride) {
    return stride / cut.block() * cut.block_of_part() + stride % cut.block();
  };
  Index made;
  made.offset = shrink(index.offset) - begin * cut.stride;
  for (std::int64_t stride : index.coefficients) made.coefficients.push_back(shrink(stride));
  return made;
}

struct Part {
  std::size_t step = 0;
  std::size_t store = 0;  ///< Where in the body.
  std::int64_t begin = 0;
};

struct Reader {
  std::size_t step = 0;
  std::size_t loop = 0;  ///< The one that walks along the dimension.
};

class Unroller {
 public:
  Unroller(LoopProgram& program, StepContext& context) : program_(program), context_(context) {}

  // Whether anything was unrolled.
  bool run() {
    const std::vector<bool> is_output = output_buffers(program_);
    const std::size_t count = program_.buffers.size();
    writers_.resize(count);
    readers_.resize(count);
    std::vector<bool> is_kept = is_output;
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      const StepUses uses = uses_of(program_.steps[step]);
      for (BufferId buffer : uses.writes) writers_[buffer].push_back(step);
      for (BufferId buffer : uses.reads) readers_[buffer].push_back(step);
    }
    for (const Buffer& buffer : program_.buffers) {
      for (BufferId base : buffer.aliases) is_kept[base] = true;
    }
    bool has_unrolled = false;
    for (BufferId buffer = 0; buffer < count; ++buffer) {
      const std::size_t parts = writers_[buffer].size();
      if (is_kept[buffer] || parts < 2 || parts > kMostParts || readers_[buffer].empty() ||
          program_.buffers[buffer].kind != Buffer::Kind::intermediate) {
        continue;
      }
      if (unroll(buffer)) has_unrolled = true;
    }
    return has_unrolled;
  }

 private:
  Kernel* kernel_at(std::size_t step) { return std::get_if<Kernel>(&program_.steps[step]); }

  bool unroll(BufferId buffer) {
    const auto count = static_cast<std::int64_t>(writers_[buffer].size());
    const Buffer& joined = program_.buffers[buffer];
    for (std::size_t dimension = 0; dimension < joined.sizes.size(); ++dimension) {
      const std::int64_t size = joined.sizes[dimension];
      if (size == 0 || size % count != 0) continue;
      const Cut cut{.stride = joined.strides[dimension], .size = size, .length = size / count};
      if (cut.stride == 1 && cut.length < kShortestPart) continue;
      const auto parts = find_parts(buffer, cut);
      if (!parts) continue;
      const auto readers = find_readers(buffer, cut);
      if (!readers || !context_.may_apply()) return false;
      rewrite(buffer, dimension, cut, *parts, *readers);
      return true;
    }
    return false;
  }

  // What writes the parts, in their order along the dimension.
  std::optional<std::vector<Part>> find_parts(BufferId buffer, const Cut& cut) {
    std::vector<Part> parts;
    for (std::size_t step : writers_[buffer]) {
      const Kernel* kernel = kernel_at(step);
      if (kernel == nullptr || !is_pointwise(*kernel)) return std::nullopt;
      const auto& body = kernel->passes[0].body;
      std::optional<Part> part;
      for (std::size_t place = 0; place < body.size(); ++place) {
        if (!touches_memory(body[place].op) || body[place].buffer != buffer) continue;
        if (part || body[place].op != Op::store) return std::nullopt;
        const auto digits = digits_of(body[place].index, kernel->outer, cut);
        if (!digits || digits->begin % cut.length != 0 ||
            digits->last >= digits->begin + cut.length) {
          return std::nullopt;
        }
        part = Part{.step = step, .store = place, .begin = digits->begin};
      }
      // Stores go to different places, so as many as a part has fill it.
      const std::int64_t elements = program_.buffers[buffer].elements / cut.size * cut.length;
      if (!part || points(kernel->outer) != elements) return std::nullopt;
      parts.push_back(*part);
    }
    std::ranges::sort(parts, {}, &Part::begin);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].begin != static_cast<std::int64_t>(i) * cut.length) return std::nullopt;
    }
    return parts;
  }

  std::optional<std::vector<Reader>> find_readers(BufferId buffer, const Cut& cut) {
    std::vector<Reader> readers;
    for (std::size_t step : readers_[buffer]) {
      const Kernel* kernel = kernel_at(step);
      const auto parts = writers_[buffer].size();
      if (kernel == nullptr || !is_pointwise(*kernel) ||
          kernel->passes[0].body.size() * parts > kMostInstructions) {
        return std::nullopt;
      }
      std::optional<std::size_t> loop;
      for (const Instruction& access : kernel->passes[0].body) {
        if (!touches_memory(access.op) || access.buffer != buffer) continue;
        if (access.op != Op::load || !access.conditions.empty()) return std::nullopt;
        const auto found = loop_along(access.index, kernel->outer, cut);
        if (!found || (loop && *loop != *found)) return std::nullopt;
        loop = found;
      }
      if (!loop) return std::nullopt;
      readers.push_back({.step = step, .loop = *loop});
    }
    return readers;
  }

  // The loop that walks once along the whole dimension, if one does.
  static std::optional<std::size_t> loop_along(const Index& index, const Sizes& loops,
                                               const Cut& cut) {
    const auto digits = digits_of(index, loops, cut);
    if (!digits || digits->begin != 0 || digits->last != cut.size - 1) return std::nullopt;
    for (std::size_t loop = 0; loop < loops.size(); ++loop) {
      if (loops[loop] == cut.size && index.coefficient(loop) == cut.stride) return loop;
    }
    return std::nullopt;
  }

  void rewrite(BufferId buffer, std::size_t dimension, const Cut& cut,
               const std::vector<Part>& parts, const std::vector<Reader>& readers) {
    std::vector<BufferId> own;
    for (const Part& part : parts) {
      own.push_back(new_buffer(buffer, dimension, cut));
      Instruction& store = kernel_at(part.step)->passes[0].body[part.store];
      store.buffer = own.back();
      store.index = in_part(store.index, cut, part.begin);
    }
    for (const Reader& reader : readers) {
      Kernel& kernel = *kernel_at(reader.step);
      observe::artifact(observe::Artifact::fusion, [&] {
        return "unrolled " + kernel.name + " over the parts of " + program_.buffers[buffer].name;
      });
      unroll_reader(kernel, reader.loop, buffer, cut, own);
      context_.applied(kernel);
    }
  }

  BufferId new_buffer(BufferId joined, std::size_t dimension, const Cut& cut) {
    Buffer part = program_.buffers[joined];
    const auto id = static_cast<BufferId>(program_.buffers.size());
    part.name += "_part_" + std::to_string(id);
    part.sizes[dimension] = cut.length;
    for (std::int64_t& stride : part.strides) {
      if (stride > cut.stride) stride = stride / cut.size * cut.length;
    }
    part.elements = part.elements / cut.size * cut.length;
    program_.buffers.push_back(std::move(part));
    return id;
  }

  // One copy of the body per part, side by side.
  static void unroll_reader(Kernel& kernel, std::size_t loop, BufferId joined, const Cut& cut,
                            const std::vector<BufferId>& parts) {
    const std::vector<Instruction> body = std::move(kernel.passes[0].body);
    auto& made = kernel.passes[0].body;
    made.clear();
    kernel.outer[loop] = cut.length;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const std::int64_t begin = static_cast<std::int64_t>(part) * cut.length;
      const auto shift = [&](Index& index) { index.offset += index.coefficient(loop) * begin; };
      const auto first = static_cast<ValueId>(made.size());
      for (Instruction instruction : body) {
        for (ValueId& operand : instruction.operands) {
          if (operand != kNoValue) operand += first;
        }
        if (instruction.op == Op::load && instruction.buffer == joined) {
          instruction.buffer = parts[part];
          instruction.index = in_part(instruction.index, cut, 0);  // the loop starts at the part
        } else {
          shift(instruction.index);
        }
        for (Condition& condition : instruction.conditions) shift(condition.index);
        made.push_back(std::move(instruction));
      }
    }
  }

  LoopProgram& program_;
  StepContext& context_;
  std::vector<std::vector<std::size_t>> writers_;
  std::vector<std::vector<std::size_t>> readers_;
};

}  // namespace

void unroll_joins(LoopProgram& program, StepContext& context) {
  if (Unroller(program, context).run()) inline_producers(program, context);
}

}  // namespace assay::kernels
