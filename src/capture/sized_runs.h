/// \file How a segment that fits several sizes of its tensors runs: one graph, in which numbers
/// that follow from sizes are nodes. Sizes that are met for the first time are checked: what the
/// program decided by such numbers must come out the same. They run without being compiled, but for
/// the parts of the graph that do not depend on sizes (fixed_parts.h); sizes that come again are
/// compiled for themselves, as many as `accumulated_cache_size_limit`. Made by RecipeBuilder, used
/// by Segment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "assay/compiler.h"
#include "capture/fixed_parts.h"
#include "guards/guards.h"

namespace assay::capture {

class SizedRuns {
 public:
  /// A number that is needed besides the graph's results.
  struct Number {
    std::int64_t value = 0;            ///< When the segment was recorded.
    bool is_expected = false;          ///< It must be the same in every call.
    bool follows_from_inputs = false;  ///< From the sizes of inputs alone.
  };
  struct Plan {
    std::shared_ptr<const graph::Graph> graph;
    /// The same inputs; the numbers that follow from inputs.
    std::shared_ptr<const graph::Graph> checks;
    /// The same, with all other numbers after the results; null if there are none.
    std::shared_ptr<const graph::Graph> probe;
    std::vector<Number> numbers;
    /// By input: its sizes or its number are not guarded, and the results depend on them.
    std::vector<bool> is_open;
    /// A number from outside is not among these, and only other numbers follow from it.
    bool checks_every_call = false;
  };
  /// Throws what planning the graphs throws.
  explicit SizedRuns(Plan plan);

  /// The inputs' sizes and numbers, and what is known for them.
  struct Run {
    std::vector<guards::InputGuard> inputs;  // those that are open
    std::vector<std::int64_t> numbers;
    std::shared_ptr<const CompiledGraph> compiled;  // null: not yet
    int calls = 0;                                  // that were not compiled
    std::uint64_t last_call = 0;                    // among all that `find` was asked for
  };

  /// Compiles the parts that do not depend on sizes, or gives null.
  using CompileParts = std::function<std::shared_ptr<const CompiledGraph>(const FixedParts&)>;

  /// Notes whether other sizes fitted, and returns it. After several that did not, and none that
  /// did, no further ones are tried.
  bool note(bool fitted);
  bool gave_up() const { return misfits_ >= kMostMisfits; }
  /// What is known for these inputs, or null.
  std::shared_ptr<Run> find(std::span<const c10::IValue> inputs);
  /// Of inputs that were not met before: the numbers that follow from them are as expected.
  bool pass_checks(std::span<const c10::IValue> inputs, std::vector<std::int64_t>& numbers) const;
  bool checks_every_call() const { return plan_.checks_every_call; }
  bool has_probe() const { return probe_ != nullptr; }
  /// Runs the graph for sizes that were not met before; false, and no outputs, if a number is not
  /// as expected.
  bool call_probe(std::span<c10::IValue> inputs, std::vector<std::int64_t>& numbers,
                  Outputs& outputs, const CompileParts& compile);
  /// Runs the graph for any sizes.
  void call_any(std::span<c10::IValue> inputs, Outputs& outputs, const CompileParts& compile);
  std::shared_ptr<Run> add(std::span<const c10::IValue> inputs, std::vector<std::int64_t> numbers);
  /// How often sizes must come before it pays to compile the graph for them. The more sizes there
  /// are, the less often each will come again; and where parts are compiled, less is gained.
  int calls_before_compiling() const;
  /// Whether one more may be compiled. One that has not been called for long makes room. Those in
  /// use do not: if more sizes come in turns than may be kept, the others stay uncompiled, rather
  /// than each being compiled again and again.
  bool makes_room();
  /// The run of the recording itself.
  void add_recorded(std::span<const c10::IValue> inputs,
                    std::shared_ptr<const CompiledGraph> compiled);

 private:
  // A graph for any sizes.
  struct Uncompiled {
    explicit Uncompiled(std::shared_ptr<const graph::Graph> graph) : parts(std::move(graph)) {}
    FixedParts parts;
    std::mutex mutex;
    bool is_decided = false;
    std::shared_ptr<const CompiledGraph> in_parts;  // null: runs as it is
  };
  static void call(Uncompiled& graph, std::span<c10::IValue> inputs, Outputs& outputs,
                   const CompileParts& compile);

  bool take(std::span<const c10::IValue> values, bool follow_from_inputs,
            std::vector<std::int64_t>& numbers) const;
  std::size_t hash(std::span<const c10::IValue> inputs) const;
  void forget_older_half();

  Plan plan_;
  std::unique_ptr<Uncompiled> any_;
  std::shared_ptr<const CompiledGraph> checks_;  // null: nothing follows from inputs
  std::unique_ptr<Uncompiled> probe_;
  std::unordered_multimap<std::size_t, std::shared_ptr<Run>> runs_;  // by the hash of the inputs
  std::uint64_t calls_ = 0;
  static constexpr int kMostMisfits = 4;
  int misfits_ = 0;  // in a row
};

}  // namespace assay::capture
