/// \file For tests: watches that the loop keeps what it promises to operations and boundaries
/// (capture/activation.h, capture/operations.h). Used by capture.cpp.
#pragma once

#include <vector>

#include "capture/operations.h"

namespace assay::binding {

/// One per frame. A broken promise raises SystemError in that frame.
class CheckedBoundary final : public capture::Boundary {
 public:
  capture::Step at_instruction(capture::Activation& activation) override;

  /// Whether locals and stack are as they were at the start of the instruction; sets an exception
  /// if they are not.
  bool is_unchanged(capture::Activation& activation) const;

 private:
  int instruction_ = -1;
  std::vector<PyObject*> slots_;
};

/// Gives every argument, and what calls return, itself as origin: wherever a value has an origin
/// later, it must be the value. Runs with a CheckedBoundary in every frame.
class CheckedOperations final : public capture::Operations {
 public:
  void entered(capture::Activation& a) override;
  PyObject* binary(capture::Activation& a, int op, capture::Operand left,
                   capture::Operand right) override;
  PyObject* load_attr(capture::Activation& a, capture::Operand owner, PyObject* name) override;
  bool store_attr(capture::Activation& a, capture::Operand owner, PyObject* name,
                  capture::Operand value) override;
  bool store_item(capture::Activation& a, capture::Operand container, capture::Operand key,
                  capture::Operand value) override;
  PyObject* build_tuple(capture::Activation& a, PyObject* const* items,
                        capture::Source* const* origins, std::size_t count) override;
  PyObject* build_map(capture::Activation& a, PyObject* const* items,
                      capture::Source* const* origins, std::size_t pairs) override;
  bool unpack(capture::Activation& a, capture::Operand iterable, int before, int after,
              PyObject** out) override;
  PyObject* next(capture::Activation& a, capture::Operand iterator) override;
  PyObject* call(capture::Activation& a, const capture::CallOperands& operands) override;
  PyObject* call_ex(capture::Activation& a, capture::Operand callable, capture::Operand args,
                    capture::Operand kwargs) override;
  PyObject* before_with(capture::Activation& a, capture::Operand manager, PyObject** exit) override;
};

}  // namespace assay::binding
