/// \file A compiled graph that takes the program's own tensors, as a Python backend's function
/// does: a replay hands them over as they are. Implemented by the Python binding, used by Segment.
#pragma once

#include <Python.h>

#include <span>

#include "assay/compiler.h"

namespace assay::capture {

class ObjectGraph {
 public:
  virtual ~ObjectGraph() = default;
  /// As CompiledGraph::call. The place before the first argument may be overwritten.
  virtual void call_objects(std::span<PyObject*> arguments, Outputs& outputs) const = 0;
};

}  // namespace assay::capture
