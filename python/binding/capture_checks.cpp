#include "capture_checks.h"

#include "capture/loop.h"

namespace assay::binding {

using capture::Activation;
using capture::Operand;
using capture::Source;

namespace {

Source* origin_for(PyObject* value) { return reinterpret_cast<Source*>(value); }

bool broken(const Activation& a, const char* what) {
  PyErr_Format(PyExc_SystemError, "capture loop: %s at instruction %d of %U", what, a.instruction,
               a.code->co_qualname);
  return false;
}

bool is_right(Operand operand) {
  return operand.origin == nullptr || operand.origin == origin_for(operand.object);
}

bool origins_are_right(Activation& a) {
  for (PyObject** slot = a.locals; slot < a.top; ++slot) {
    if (!is_right({*slot, a.origins[slot - a.locals]})) return broken(a, "an origin has no value");
  }
  return true;
}

bool is_as_at_start(Activation& a) {
  return static_cast<const CheckedBoundary*>(a.boundary)->is_unchanged(a);
}

// `result` unless the frame has changed in the meantime.
PyObject* checked(Activation& a, PyObject* result) {
  if (result == nullptr || is_as_at_start(a)) return result;
  Py_DECREF(result);
  return nullptr;
}

}  // namespace

capture::Step CheckedBoundary::at_instruction(Activation& a) {
  instruction_ = a.instruction;
  slots_.assign(a.locals, a.top);
  const int depth = a.stack_depth();
  const bool is_fine =
      depth >= 0 && depth <= a.code->co_stacksize ? origins_are_right(a) : broken(a, "stack depth");
  return is_fine ? capture::Step::execute : capture::Step::raised;
}

bool CheckedBoundary::is_unchanged(Activation& a) const {
  if (capture::current_activation() != &a) return broken(a, "not the current activation");
  if (a.instruction != instruction_) return broken(a, "not the instruction that was announced");
  if (a.top - a.locals != static_cast<std::ptrdiff_t>(slots_.size())) {
    return broken(a, "operands left the stack");
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (a.locals[i] != slots_[i]) return broken(a, "a slot changed");
  }
  return origins_are_right(a);
}

void CheckedOperations::entered(Activation& a) {
  for (PyObject** slot = a.locals; slot < a.top; ++slot) {
    a.origins[slot - a.locals] = origin_for(*slot);
  }
}

PyObject* CheckedOperations::binary(Activation& a, int op, Operand left, Operand right) {
  // It may take a string from its local, to append to it.
  if (!is_as_at_start(a) || !is_right(left) || !is_right(right)) return nullptr;
  return Operations::binary(a, op, left, right);
}

PyObject* CheckedOperations::load_attr(Activation& a, Operand owner, PyObject* name) {
  return is_as_at_start(a) ? checked(a, Operations::load_attr(a, owner, name)) : nullptr;
}

bool CheckedOperations::store_attr(Activation& a, Operand owner, PyObject* name, Operand value) {
  return is_as_at_start(a) && Operations::store_attr(a, owner, name, value);
}

bool CheckedOperations::store_item(Activation& a, Operand container, Operand key, Operand value) {
  return is_as_at_start(a) && Operations::store_item(a, container, key, value);
}

PyObject* CheckedOperations::build_tuple(Activation& a, PyObject* const* items,
                                         Source* const* origins, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_right({items[i], origins[i]})) broken(a, "an origin beside the wrong item");
  }
  if (PyErr_Occurred() != nullptr || !is_as_at_start(a)) return nullptr;
  return Operations::build_tuple(a, items, origins, count);
}

PyObject* CheckedOperations::build_map(Activation& a, PyObject* const* items,
                                       Source* const* origins, std::size_t pairs) {
  for (std::size_t i = 0; i < 2 * pairs; ++i) {
    if (!is_right({items[i], origins[i]})) broken(a, "an origin beside the wrong item");
  }
  if (PyErr_Occurred() != nullptr || !is_as_at_start(a)) return nullptr;
  return Operations::build_map(a, items, origins, pairs);
}

bool CheckedOperations::unpack(Activation& a, Operand iterable, int before, int after,
                               PyObject** out) {
  return is_as_at_start(a) && Operations::unpack(a, iterable, before, after, out);
}

PyObject* CheckedOperations::next(Activation& a, Operand iterator) {
  return is_as_at_start(a) ? checked(a, Operations::next(a, iterator)) : nullptr;
}

PyObject* CheckedOperations::call(Activation& a, const capture::CallOperands& operands) {
  bool is_fine = is_as_at_start(a) && is_right(operands.callable);
  for (std::size_t i = 0; i < operands.count && is_fine; ++i) {
    if (!is_right({operands.args[i], operands.origins[i]})) is_fine = broken(a, "an argument");
  }
  if (!is_fine) return nullptr;
  PyObject* result = checked(a, Operations::call(a, operands));
  a.returned_origin = origin_for(result);
  return result;
}

PyObject* CheckedOperations::call_ex(Activation& a, Operand callable, Operand args,
                                     Operand kwargs) {
  if (!is_as_at_start(a)) return nullptr;
  PyObject* result = checked(a, Operations::call_ex(a, callable, args, kwargs));
  a.returned_origin = origin_for(result);
  return result;
}

PyObject* CheckedOperations::before_with(Activation& a, Operand manager, PyObject** exit) {
  return is_as_at_start(a) ? Operations::before_with(a, manager, exit) : nullptr;
}

}  // namespace assay::binding
