#include "kernels/independent_steps.h"

#include <algorithm>
#include <optional>

#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

// Every step is compared with all that are in its run.
constexpr std::size_t kLongestRun = 64;

// Bytes of the arena, or of the memory of one buffer.
struct Extent {
  BufferId owner = kNoBuffer;  ///< kNoBuffer: the arena.
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

bool overlap(const Extent& left, const Extent& right) {
  return left.owner == right.owner && left.begin < right.end && right.begin < left.end;
}

struct StepMemory {
  std::vector<Extent> reads;
  std::vector<Extent> writes;
};

class RunFinder {
 public:
  RunFinder(const LoopProgram& program, const MemoryPlan& plan) : program_(program), plan_(plan) {}

  std::vector<std::size_t> run() {
    const std::size_t count = program_.steps.size();
    std::vector<std::size_t> ends;
    for (std::size_t step = 0; step < count; ++step) ends.push_back(step + 1);
    for (std::size_t first = 0; first < count;) {
      std::vector<StepMemory> members;
      std::size_t end = first;
      for (; end < count && members.size() < kLongestRun; ++end) {
        auto memory = memory_of(program_.steps[end]);
        if (!memory || std::ranges::any_of(members, [&](const StepMemory& member) {
              return depends(*memory, member);
            })) {
          break;
        }
        members.push_back(*std::move(memory));
      }
      ends[first] = std::max(end, first + 1);
      first = ends[first];
    }
    return ends;
  }

 private:
  // Nothing for calls, and for kernels that write to memory of which more is not known.
  std::optional<StepMemory> memory_of(const Step& step) const {
    if (!std::holds_alternative<Kernel>(step)) return std::nullopt;
    const StepUses uses = uses_of(step);
    StepMemory memory;
    for (const BufferId id : uses.reads) {
      if (program_.buffers[id].kind != Buffer::Kind::scratch) memory.reads.push_back(extent_of(id));
    }
    for (const BufferId id : uses.writes) {
      if (program_.buffers[id].kind == Buffer::Kind::scratch) continue;
      const Storage storage = plan_.places[id].storage;
      if (storage != Storage::arena && storage != Storage::fresh) return std::nullopt;
      memory.writes.push_back(extent_of(id));
    }
    return memory;
  }

  Extent extent_of(BufferId id) const {
    const std::int64_t bytes = size_in_bytes(program_.buffers[id]);
    const Place& place = plan_.places[id];
    if (place.storage == Storage::arena) return {kNoBuffer, place.offset, place.offset + bytes};
    return {id, 0, bytes};
  }

  static bool depends(const StepMemory& later, const StepMemory& earlier) {
    const auto meet = [](const std::vector<Extent>& left, const std::vector<Extent>& right) {
      return std::ranges::any_of(left, [&](const Extent& one) {
        return std::ranges::any_of(right, [&](const Extent& other) { return overlap(one, other); });
      });
    };
    return meet(later.reads, earlier.writes) || meet(later.writes, earlier.reads) ||
           meet(later.writes, earlier.writes);
  }

  const LoopProgram& program_;
  const MemoryPlan& plan_;
};

}  // namespace

std::vector<std::size_t> ends_of_independent_runs(const LoopProgram& program,
                                                  const MemoryPlan& plan) {
  return RunFinder(program, plan).run();
}

}  // namespace assay::kernels
