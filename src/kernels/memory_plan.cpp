#include "kernels/memory_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "assay/error.h"
#include "kernels/extern_call.h"
#include "kernels/loop_edit.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

const graph::RegisterPass registered_out_variants(
    {.name = "use_out_variants",
     .room = "kernels",
     .description = "lets matrix products write their results into planned memory"});
const graph::RegisterPass registered_memory_plan(
    {.name = "reuse_in_place",
     .room = "kernels",
     .description = "gives a kernel's result the place of an operand that dies there"});

constexpr std::int64_t kAlignment = 64;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// The free parts of an arena that grows.
class Arena {
 public:
  std::int64_t take(std::int64_t bytes) {
    auto best = free_.end();
    for (auto part = free_.begin(); part != free_.end(); ++part) {
      if (part->second >= bytes && (best == free_.end() || part->second < best->second))
        best = part;
    }
    if (best == free_.end()) return grow(bytes);
    const std::int64_t offset = best->first;
    const std::int64_t left = best->second - bytes;
    free_.erase(best);
    if (left > 0) free_.emplace(offset + bytes, left);
    return offset;
  }

  void give_back(std::int64_t offset, std::int64_t bytes) {
    auto [part, is_new] = free_.emplace(offset, bytes);
    internal_check(is_new, "memory is given back once");
    if (const auto next = std::next(part);
        next != free_.end() && part->first + part->second == next->first) {
      part->second += next->second;
      free_.erase(next);
    }
    if (part != free_.begin()) {
      const auto previous = std::prev(part);
      if (previous->first + previous->second == part->first) {
        previous->second += part->second;
        free_.erase(part);
      }
    }
  }

  std::int64_t size() const { return size_; }

 private:
  // The last free part, if it is at the end, grows with the arena.
  std::int64_t grow(std::int64_t bytes) {
    std::int64_t offset = size_;
    if (!free_.empty()) {
      const auto last = std::prev(free_.end());
      if (last->first + last->second == size_) {
        offset = last->first;
        free_.erase(last);
      }
    }
    size_ = offset + bytes;
    return offset;
  }

  std::map<std::int64_t, std::int64_t> free_;
  std::int64_t size_ = 0;
};

std::int64_t padded_bytes(const Buffer& buffer) {
  return std::max<std::int64_t>((size_in_bytes(buffer) + kAlignment - 1) / kAlignment, 1) *
         kAlignment;
}

// Every access of `from` is at the index at which `to` is written, at the same point of the same
// loops, and nothing reads `from` after that: then both may be in one place.
bool can_overwrite(const Kernel& kernel, BufferId from, BufferId to) {
  const Index* written = nullptr;
  const Sizes* written_inner = nullptr;
  for (const Pass& pass : kernel.passes) {
    for (const Instruction& instruction : pass.body) {
      if (!writes_memory(instruction.op) || instruction.buffer != to) continue;
      if (instruction.op != Op::store || written != nullptr) return false;
      written = &instruction.index;
      written_inner = &pass.inner;
    }
  }
  if (written == nullptr) return false;
  bool is_written = false;
  for (const Pass& pass : kernel.passes) {
    for (const Instruction& instruction : pass.body) {
      if (writes_memory(instruction.op) && instruction.buffer == to) is_written = true;
      if (writes_memory(instruction.op) && instruction.buffer == from) return false;
      if (!reads_memory(instruction.op)) continue;
      if (instruction.buffer == to) return false;
      if (instruction.buffer != from) continue;
      if (instruction.op != Op::load || is_written || pass.inner != *written_inner ||
          !same_index(instruction.index, *written)) {
        return false;
      }
    }
  }
  return true;
}

bool is_from_outside(const ExternCall& call) {
  const std::string_view name = call.node->target().name();
  return name.starts_with("torch.ops.") && !name.starts_with("torch.ops.aten.") &&
         !name.starts_with("torch.ops.prims.") && !name.starts_with("torch.ops.mkldnn.");
}

class MemoryPlanner {
 public:
  MemoryPlanner(const LoopProgram& program, StepContext& context)
      : program_(program), context_(context) {}

  MemoryPlan run() {
    find_uses();
    place_outside();
    for (std::size_t step = 0; step < program_.steps.size(); ++step) plan_step(step);
    plan_.arena_bytes = arena_.size();
    plan_.peak_bytes = arena_.size() + peak_outside_;
    return std::move(plan_);
  }

 private:
  void find_uses() {
    const std::size_t count = program_.buffers.size();
    first_.assign(count, kNever);
    last_.assign(count, kNever);
    escapes_ = output_buffers(program_);
    for (std::size_t step = 0; step < program_.steps.size(); ++step) {
      uses_.push_back(uses_of(program_.steps[step]));
      for (const auto* list : {&uses_.back().reads, &uses_.back().writes}) {
        for (BufferId buffer : *list) {
          if (first_[buffer] == kNever) first_[buffer] = step;
          last_[buffer] = step;
        }
      }
    }
    // A result that may be a view keeps what it may be a view of. Later ones first, so that views
    // of views count.
    for (std::size_t id = count; id-- > 0;) {
      for (BufferId base : program_.buffers[id].aliases) {
        if (first_[base] == kNever || last_[id] == kNever) continue;
        last_[base] = std::max(last_[base], last_[id]);
        if (escapes_[id]) escapes_[base] = true;
      }
    }
    // A value that is kept under its node (a list of tensors) may hold views of what it was made
    // of, and an operator from outside of PyTorch may keep what it is given.
    for (const Step& step : program_.steps) {
      const auto* call = std::get_if<ExternCall>(&step);
      if (call == nullptr) continue;
      const bool has_results =
          std::ranges::any_of(call->results, [](BufferId result) { return result != kNoBuffer; });
      if (has_results && !is_from_outside(*call)) continue;
      for (const auto& operand : call->operands) {
        if (const auto* tensor = std::get_if<TensorRef>(&operand)) escapes_[tensor->buffer] = true;
      }
    }
  }

  // What is not in the arena.
  void place_outside() {
    plan_.places.resize(program_.buffers.size());
    plan_.allocated.resize(program_.steps.size());
    plan_.released.resize(program_.steps.size());
    for (BufferId id = 0; id < program_.buffers.size(); ++id) {
      const Buffer& buffer = program_.buffers[id];
      Place& place = plan_.places[id];
      switch (buffer.kind) {
        case Buffer::Kind::scratch:
          break;
        case Buffer::Kind::input:
          place.storage = Storage::input;
          break;
        case Buffer::Kind::result:
          if (first_[id] != kNever) place.storage = Storage::result;
          break;
        case Buffer::Kind::intermediate:
          if (first_[id] != kNever) {
            place.storage = escapes_[id] ? Storage::fresh : Storage::arena;
          }
          break;
      }
      if (place.storage == Storage::none || place.storage == Storage::arena) continue;
      if (place.storage == Storage::fresh) plan_.allocated[first_[id]].push_back(id);
      if (last_[id] != kNever && !escapes_[id]) plan_.released[last_[id]].push_back(id);
    }
  }

  void plan_step(std::size_t step) {
    std::vector<BufferId> dying;
    for (const auto* list : {&uses_[step].reads, &uses_[step].writes}) {
      for (BufferId buffer : *list) {
        if (plan_.places[buffer].storage == Storage::arena && last_[buffer] == step &&
            std::ranges::find(dying, buffer) == dying.end()) {
          dying.push_back(buffer);
        }
      }
    }
    for (BufferId buffer : uses_[step].writes) {
      if (first_[buffer] != step) continue;
      if (plan_.places[buffer].storage == Storage::arena) {
        place_in_arena(step, buffer, dying);
      } else {
        outside_ += size_in_bytes(program_.buffers[buffer]);
      }
    }
    // What has no elements may have no writer.
    for (BufferId buffer : uses_[step].reads) {
      if (first_[buffer] == step && plan_.places[buffer].storage == Storage::arena &&
          std::ranges::find(uses_[step].writes, buffer) == uses_[step].writes.end()) {
        plan_.places[buffer].offset = arena_.take(padded_bytes(program_.buffers[buffer]));
      }
    }
    peak_outside_ = std::max(peak_outside_, outside_);
    for (BufferId buffer : dying) {
      arena_.give_back(plan_.places[buffer].offset, padded_bytes(program_.buffers[buffer]));
    }
    // What dies at a step because a view of it dies there is not among that step's own uses.
    for (BufferId buffer : extended_deaths(step)) {
      arena_.give_back(plan_.places[buffer].offset, padded_bytes(program_.buffers[buffer]));
    }
    for (BufferId buffer : plan_.released[step]) {
      if (plan_.places[buffer].storage != Storage::input) {
        outside_ -= size_in_bytes(program_.buffers[buffer]);
      }
    }
  }

  void place_in_arena(std::size_t step, BufferId buffer, std::vector<BufferId>& dying) {
    const std::int64_t bytes = padded_bytes(program_.buffers[buffer]);
    if (const auto* kernel = std::get_if<Kernel>(&program_.steps[step])) {
      for (auto from = dying.begin(); from != dying.end(); ++from) {
        if (*from == buffer || padded_bytes(program_.buffers[*from]) != bytes ||
            c10::elementSize(program_.buffers[*from].dtype) !=
                c10::elementSize(program_.buffers[buffer].dtype) ||
            !can_overwrite(*kernel, *from, buffer) || !context_.may_apply()) {
          continue;
        }
        plan_.places[buffer].offset = plan_.places[*from].offset;
        dying.erase(from);
        // A buffer that nobody reads dies where it is written, in the place it took over.
        return;
      }
    }
    plan_.places[buffer].offset = arena_.take(bytes);
  }

  const std::vector<BufferId>& extended_deaths(std::size_t step) {
    if (deaths_.empty()) {
      deaths_.resize(program_.steps.size());
      for (BufferId id = 0; id < program_.buffers.size(); ++id) {
        if (plan_.places[id].storage != Storage::arena) continue;
        const StepUses& uses = uses_[last_[id]];
        const bool is_own = std::ranges::find(uses.reads, id) != uses.reads.end() ||
                            std::ranges::find(uses.writes, id) != uses.writes.end();
        if (!is_own) deaths_[last_[id]].push_back(id);
      }
    }
    return deaths_[step];
  }

  const LoopProgram& program_;
  StepContext& context_;
  MemoryPlan plan_;
  Arena arena_;
  std::vector<StepUses> uses_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> last_;
  std::vector<bool> escapes_;
  std::vector<std::vector<BufferId>> deaths_;
  std::int64_t outside_ = 0;
  std::int64_t peak_outside_ = 0;
};

bool has_dense_layout(const Buffer& buffer) {
  std::int64_t expected = 1;
  for (std::size_t i = buffer.sizes.size(); i-- > 0;) {
    if (buffer.sizes[i] != 1 && buffer.strides[i] != expected) return false;
    expected *= std::max<std::int64_t>(buffer.sizes[i], 1);
  }
  return true;
}

}  // namespace

std::int64_t size_in_bytes(const Buffer& buffer) {
  return buffer.elements * static_cast<std::int64_t>(c10::elementSize(buffer.dtype));
}

void use_out_variants(LoopProgram& program, StepContext& context) {
  for (Step& step : program.steps) {
    auto* call = std::get_if<ExternCall>(&step);
    if (call == nullptr || find_out_function(*call) == nullptr) continue;
    Buffer& buffer = program.buffers[call->results[0]];
    if (buffer.kind != Buffer::Kind::result || !has_dense_layout(buffer)) continue;
    if (context.may_apply()) buffer.kind = Buffer::Kind::intermediate;
  }
}

MemoryPlan plan_memory(const LoopProgram& program, StepContext& context) {
  return MemoryPlanner(program, context).run();
}

}  // namespace assay::kernels
