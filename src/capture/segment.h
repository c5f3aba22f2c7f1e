/// \file A recorded segment of a frame: its guards, its compiled graph, and how the frame looks
/// afterwards. Made by the recorder, found and replayed by the frame driver.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/compiler.h"
#include "aten/autocast_regions.h"
#include "capture/activation.h"
#include "capture/recipe.h"
#include "capture/segment_guards.h"
#include "capture/sized_runs.h"
#include "graph/graph.h"

namespace assay::capture {

class ObjectGraph;
struct CaptureSettings;

/// A change of an object that existed before the segment, redone after its graph has run.
struct Effect {
  enum class Kind : std::uint8_t {
    set_item,     ///< dict[key] = value (instance and module attributes and globals too)
    delete_item,  ///< del dict[key]
    append,       ///< list.append(value)
    replace,      ///< The contents of a list, dict, set or deque become those of `value`.
    call_method,  ///< key(target, *value): a method of a set, whose order follows from what is done
    call,         ///< key(*value, **target): a function that logs; no target: no keywords
    set_contents,   ///< cell = value; no value: the cell becomes empty
    set_member,     ///< An attribute in a slot of __slots__; `key` is the descriptor.
    set_attribute,  ///< setattr(class, key, value); no value: delattr
    set_grad_mode,  ///< torch.set_grad_enabled(value)
  };
  Kind kind = Kind::set_item;
  int target = -1;  ///< Recipes; -1 where there is none.
  int key = -1;
  int value = -1;
  /// What is changed and by which line, for TORCH_LOGS=side_effects; empty if nobody reads it.
  std::string description = {};
};

/// Where a segment takes a graph input from.
struct GraphInput {
  int step = -1;  ///< The guard step that fetches it: a tensor or a number.
};

/// Why a segment ended before the frame did.
struct BreakReason {
  std::string reason;  ///< In words for a user. Empty: the frame returned.
  std::string file;
  int line = 0;
  std::string function;
  std::string source_line;
  bool is_break = true;  ///< False for the natural end of a segment: a loop over an older iterator.
};

/// What shows whether a tensor has been mutated.
struct InputState {
  std::int64_t version = 0;  ///< -1: it does not count its versions.
  bool requires_grad = false;
  bool operator==(const InputState&) const = default;
};

/// A tensor or number as the graph takes it. Throws `PythonError`.
c10::IValue to_input(PyObject* object);

struct Segment {
  std::unique_ptr<SegmentGuards> guards;
  std::shared_ptr<const graph::Graph> graph;      ///< Null if no operator was recorded.
  std::shared_ptr<const CompiledGraph> compiled;  ///< Null likewise.
  const ObjectGraph* takes_objects = nullptr;     ///< `compiled`, if it is one of these.
  /// If it fits several sizes of its inputs; else null. `compiled` is for those of the recording.
  std::shared_ptr<SizedRuns> sizes;
  std::vector<GraphInput> inputs;
  Recipes recipes;
  std::vector<Effect> effects;
  struct Slot {
    int index;   ///< Into localsplus.
    int recipe;  ///< -1: the slot becomes empty.
  };
  std::vector<Slot> slots;  ///< Those that change, the stack included.
  int stack_depth = 0;      ///< At the end.
  int end = 0;              ///< The instruction at which execution goes on.
  int result = -1;          ///< The recipe of what the frame returns; -1: it goes on.
  bool mutates_inputs = false;
  bool is_random = false;  ///< The graph draws random numbers.
  /// Nodes whose gradient something outside of the graph sees, though others are computed from
  /// them.
  std::vector<graph::NodeId> hooked;
  /// Recorded because a tensor had another size than those of the segments before.
  bool is_for_other_size = false;
  /// The graph is run with grad mode on, and sets the mode it needs itself.
  bool runs_with_grad = false;
  /// Of a graph that mutates inputs: how these share memory.
  std::optional<guards::Guards> sharing;
  /// Regions of autocast that the frame is in at the end; the graph itself leaves them.
  std::vector<aten::AutocastState> autocast;
  BreakReason reason;

  /// The backend and its options, for sizes that are compiled later.
  std::shared_ptr<const CaptureSettings> settings;

  /// Whether the inputs share memory as they did; asked when the guards hold.
  bool shares_memory_as_before(const GuardValues& values) const;
  enum class Replay {
    done,
    raised,         ///< A Python exception is set; nothing of the frame or of its inputs changed.
    raised_midway,  ///< The same, but inputs of the graph may have been mutated.
    misfits,        ///< The segment does not fit the sizes of its inputs. Nothing has changed.
  };
  /// Runs the graph and brings the frame to its state at the end.
  Replay replay(Activation& activation, const GuardValues& values) const;

 private:
  using Arguments = c10::SmallVector<c10::IValue, 16>;
  Arguments arguments_of(const GuardValues& values) const;
  /// Of the inputs of a graph that mutates some: what shows whether that has happened.
  using InputStates = c10::SmallVector<InputState, 16>;
  InputStates states_of_inputs(const GuardValues& values) const;
  bool are_inputs_unchanged(const GuardValues& values, const InputStates& before) const;
  /// False: misfits.
  bool run_graph(const GuardValues& values, std::vector<std::int64_t>& numbers,
                 Outputs& outputs) const;
  bool call_graph(const GuardValues& values, std::vector<std::int64_t>& numbers,
                  Outputs& outputs) const;
  bool call_sized(const GuardValues& values, std::vector<std::int64_t>& numbers,
                  Outputs& outputs) const;
};

}  // namespace assay::capture
