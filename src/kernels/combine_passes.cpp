#include "kernels/combine_passes.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "assay/error.h"
#include "kernels/loop_edit.h"
#include "kernels/program_uses.h"

namespace assay::kernels {

namespace {

// An instruction with the number it had in the kernel before.
struct Numbered {
  Instruction instruction;
  ValueId old = 0;
};

struct NumberedPass {
  Sizes inner;
  std::vector<Numbered> body;
};

class PassCombiner {
 public:
  explicit PassCombiner(Kernel& kernel) : kernel_(kernel) {
    ValueId next = 0;
    for (Pass& pass : kernel.passes) {
      NumberedPass& numbered = passes_.emplace_back();
      numbered.inner = pass.inner;
      for (Instruction& instruction : pass.body) {
        home_.push_back(passes_.size() - 1);
        numbered.body.push_back({std::move(instruction), next++});
      }
    }
  }

  void run() {
    for (std::size_t pass = 1; pass < passes_.size();) {
      const std::size_t target = earliest_place(pass);
      if (target == pass) {
        ++pass;
        continue;
      }
      for (Numbered& numbered : passes_[pass].body) {
        home_[numbered.old] = target;
        passes_[target].body.push_back(std::move(numbered));
      }
      passes_.erase(passes_.begin() + static_cast<std::ptrdiff_t>(pass));
      for (std::size_t& home : home_) {
        if (home > pass) --home;
      }
    }
    write_back();
  }

 private:
  bool is_flat(std::size_t pass) const { return passes_[pass].inner.empty(); }

  // The first pass with the same loops that the instructions of `pass` can be part of; itself if
  // there is none.
  std::size_t earliest_place(std::size_t pass) const {
    std::size_t least = 0;
    for (const Numbered& numbered : passes_[pass].body) {
      for (ValueId operand : numbered.instruction.operands) {
        if (operand == kNoValue || home_[operand] == pass) continue;
        // A value of a pass without loops can be used in the same pass, others only after it.
        const std::size_t home = home_[operand];
        least = std::max(least, is_flat(home) && is_flat(pass) ? home : home + 1);
      }
      if (reads_memory(numbered.instruction.op)) {
        least = std::max(least, first_place_for_load(numbered.instruction, pass));
      }
    }
    for (std::size_t target = least; target < pass; ++target) {
      if (passes_[target].inner == passes_[pass].inner && !is_overtaking(target, pass)) {
        return target;
      }
    }
    return pass;
  }

  std::size_t first_place_for_load(const Instruction& load, std::size_t pass) const {
    std::size_t least = 0;
    for (std::size_t earlier = 0; earlier < pass; ++earlier) {
      for (const Numbered& numbered : passes_[earlier].body) {
        const Instruction& store = numbered.instruction;
        if (!writes_memory(store.op) || store.buffer != load.buffer) continue;
        const bool is_same_point =
            store.op == Op::store && load.op == Op::load && load.conditions.empty() &&
            passes_[earlier].inner == passes_[pass].inner && same_index(store.index, load.index);
        least = std::max(least, is_same_point ? earlier : earlier + 1);
      }
    }
    return least;
  }

  // A pass from `target` on reads or writes what `pass` writes.
  bool is_overtaking(std::size_t target, std::size_t pass) const {
    for (const Numbered& numbered : passes_[pass].body) {
      if (!writes_memory(numbered.instruction.op)) continue;
      for (std::size_t between = target; between < pass; ++between) {
        for (const Numbered& other : passes_[between].body) {
          const bool is_access =
              reads_memory(other.instruction.op) || writes_memory(other.instruction.op);
          if (is_access && other.instruction.buffer == numbered.instruction.buffer) return true;
        }
      }
    }
    return false;
  }

  // Numbers the instructions anew. A load of what was stored before at the same point is the value
  // that was stored.
  void write_back() {
    struct Stored {
      std::size_t pass;
      Index index;
      ValueId value;
    };
    std::vector<ValueId> values(home_.size(), kNoValue);
    std::unordered_map<BufferId, std::vector<Stored>> stored;
    ValueId next = 0;
    kernel_.passes.clear();
    for (std::size_t number = 0; number < passes_.size(); ++number) {
      Pass& pass = kernel_.passes.emplace_back();
      pass.inner = passes_[number].inner;
      for (Numbered& numbered : passes_[number].body) {
        Instruction& instruction = numbered.instruction;
        for (ValueId& operand : instruction.operands) {
          if (operand == kNoValue) continue;
          operand = values[operand];
          internal_check(operand != kNoValue, "a value is computed before it is used");
        }
        if (instruction.op == Op::load && instruction.conditions.empty()) {
          const auto found = stored.find(instruction.buffer);
          if (found != stored.end()) {
            const auto usable = std::ranges::find_if(found->second, [&](const Stored& earlier) {
              return (earlier.pass == number || is_flat(earlier.pass)) &&
                     same_index(earlier.index, instruction.index);
            });
            if (usable != found->second.end()) {
              values[numbered.old] = usable->value;
              continue;
            }
          }
        }
        if (writes_memory(instruction.op)) {
          auto& list = stored[instruction.buffer];
          // Whatever else was stored there may be overwritten.
          list.clear();
          if (instruction.op == Op::store) {
            list.push_back({number, instruction.index, instruction.operands[0]});
          }
        }
        values[numbered.old] = next++;
        pass.body.push_back(std::move(instruction));
      }
    }
  }

  Kernel& kernel_;
  std::vector<NumberedPass> passes_;
  std::vector<std::size_t> home_;  // by old number: the pass
};

}  // namespace

void combine_passes(Kernel& kernel) { PassCombiner(kernel).run(); }

}  // namespace assay::kernels
