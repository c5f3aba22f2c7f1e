/// \file What the recorder (recorder.h) hands to models, asks of its surroundings, and notes of a
/// segment besides its graph, sources and tracked objects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aten/autocast_regions.h"
#include "capture/segment.h"
#include "capture/size_numbers.h"
#include "capture/source.h"
#include "capture/trace_log.h"
#include "graph/graph.h"

namespace assay::capture {

struct Activation;

/// A call as models see it: positional arguments first, then those named by `names`.
struct Call {
  PyObject* callable = nullptr;
  PyObject* const* args = nullptr;
  std::size_t count = 0;      ///< Keyword arguments included.
  PyObject* names = nullptr;  ///< A tuple, or null.
  std::size_t positional() const {
    return count - (names == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(names)));
  }
};

/// What the recorder asks of its surroundings when a segment ends.
class SegmentSink {
 public:
  virtual ~SegmentSink() = default;
  /// A segment of `root` that started at instruction `start` has ended. Returns false with a Python
  /// exception set: the backend failed, or `fullgraph` does not allow the break.
  virtual bool finished(Activation& root, int start, std::unique_ptr<Segment> segment,
                        std::vector<c10::IValue> example_inputs) = 0;
  /// Whether a break is an error, so that graphs hold what backends cannot compile ahead of time.
  virtual bool allows_no_break() const = 0;
  /// Whether the backend makes forward and backward graphs of what it gets.
  virtual bool compiles_ahead_of_time() const = 0;
};

/// What is noted.
struct RecorderState {
  /// A region of autocast on the CPU that the segment has entered, and not left so far.
  struct AutocastRegion {
    PyObject* manager;  // tracked, so alive
    graph::Node* node;
    aten::AutocastState before;
    aten::AutocastState inside;
  };

  /// What the root's state was at the start of its current instruction.
  struct Checkpoint {
    std::uint64_t tracked = 0;
    std::size_t sources = 0;
    std::size_t lookups = 0;
    std::size_t subclass_checks = 0;
    std::size_t effects = 0;
    std::size_t nodes = 0;
    std::size_t distinct = 0;
    bool grad_mode = true;
    std::vector<AutocastRegion> autocast;
    SizeNumbers::Mark size_numbers;
  };
  /// What a local object held before an inlined function changed it.
  struct Saved {
    PyObject* object;  // tracked, so alive
    Ref contents;
  };
  struct RecordedEffect {
    Effect::Kind kind;
    Ref target;
    Ref key;
    Ref value;
    std::string line = line_of_effect();
  };
  struct Member {
    PyObject* object;
    PyObject* descriptor;
    bool operator==(const Member&) const = default;
  };
  struct Input {
    Source* source;
    graph::Node* placeholder;
    at::Tensor tensor;
    std::uint32_t version;
    bool requires_grad;
    bool is_leaf;
    Ref number;  // in the place of the tensor
  };

  /// The tensors that a call which becomes one of the graph needs.
  struct CallTensors {
    graph::List nodes;
    bool vary = false;
    bool are_fixed = true;  ///< Their values are the same in every run.
  };

  /// A frame of a function that is followed.
  struct Inlined {
    Activation* activation;
    std::uint64_t entered_at;
    bool returns_to_program;  ///< And not to C code, which may look at what it returns.
  };

  /// A dict that what the outermost of these calls back changes.
  struct DictBefore {
    PyObject* dict;  // tracked, so alive
    Ref copy;
  };
};

}  // namespace assay::capture
