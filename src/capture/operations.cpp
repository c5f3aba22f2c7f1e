// Operators, attributes, items, iteration and context managers; the other operations are in
// operations_*.cpp.
#include "capture/operations.h"

#include <array>

#include "capture/execute.h"
#include "capture/reference.h"

namespace assay::capture {

namespace {

PyObject* to_bool(bool value) { return Py_NewRef(value ? Py_True : Py_False); }

PyObject* power(PyObject* base, PyObject* exponent) {
  return PyNumber_Power(base, exponent, Py_None);
}

PyObject* in_place_power(PyObject* base, PyObject* exponent) {
  return PyNumber_InPlacePower(base, exponent, Py_None);
}

constexpr std::array<binaryfunc, NB_INPLACE_XOR + 1> binary_functions = [] {
  std::array<binaryfunc, NB_INPLACE_XOR + 1> table{};
  table[NB_ADD] = PyNumber_Add;
  table[NB_AND] = PyNumber_And;
  table[NB_FLOOR_DIVIDE] = PyNumber_FloorDivide;
  table[NB_LSHIFT] = PyNumber_Lshift;
  table[NB_MATRIX_MULTIPLY] = PyNumber_MatrixMultiply;
  table[NB_MULTIPLY] = PyNumber_Multiply;
  table[NB_REMAINDER] = PyNumber_Remainder;
  table[NB_OR] = PyNumber_Or;
  table[NB_POWER] = power;
  table[NB_RSHIFT] = PyNumber_Rshift;
  table[NB_SUBTRACT] = PyNumber_Subtract;
  table[NB_TRUE_DIVIDE] = PyNumber_TrueDivide;
  table[NB_XOR] = PyNumber_Xor;
  table[NB_INPLACE_ADD] = PyNumber_InPlaceAdd;
  table[NB_INPLACE_AND] = PyNumber_InPlaceAnd;
  table[NB_INPLACE_FLOOR_DIVIDE] = PyNumber_InPlaceFloorDivide;
  table[NB_INPLACE_LSHIFT] = PyNumber_InPlaceLshift;
  table[NB_INPLACE_MATRIX_MULTIPLY] = PyNumber_InPlaceMatrixMultiply;
  table[NB_INPLACE_MULTIPLY] = PyNumber_InPlaceMultiply;
  table[NB_INPLACE_REMAINDER] = PyNumber_InPlaceRemainder;
  table[NB_INPLACE_OR] = PyNumber_InPlaceOr;
  table[NB_INPLACE_POWER] = in_place_power;
  table[NB_INPLACE_RSHIFT] = PyNumber_InPlaceRshift;
  table[NB_INPLACE_SUBTRACT] = PyNumber_InPlaceSubtract;
  table[NB_INPLACE_TRUE_DIVIDE] = PyNumber_InPlaceTrueDivide;
  table[NB_INPLACE_XOR] = PyNumber_InPlaceXor;
  return table;
}();

// The local that the next instruction stores into, or -1.
int local_stored_next(const Activation& a) {
  const Instruction next = decode(_PyCode_CODE(a.code), a.next);
  return next.opcode == STORE_FAST ? next.arg : -1;
}

// `s += more` grows the string in place if nothing but the local and the stack refer to it, as in
// CPython: otherwise building a string piece by piece takes quadratic time. So the local and the
// stack let go of it. Null, without an exception, if that cannot be done.
PyObject* append_in_place(Activation& a, PyObject* left, PyObject* right) {
  constexpr Py_ssize_t kLocalAndStack = 2;
  if (Py_REFCNT(left) != kLocalAndStack || a.top[-2] != left) return nullptr;
  const int local = local_stored_next(a);
  if (local < 0 || a.locals[local] != left) return nullptr;
  a.top[-2] = Py_NewRef(Py_None);
  a.locals[local] = nullptr;
  a.origins[local] = nullptr;
  Py_DECREF(left);
  PyUnicode_Append(&left, right);
  return left;
}

}  // namespace

void Operations::entered(Activation& /*a*/) {}
void Operations::leaving(Activation& /*a*/) {}
void Operations::unusual(Activation& /*a*/, const char* /*what*/) {}

PyObject* Operations::unary(Activation& /*a*/, Unary op, Operand value) {
  switch (op) {
    case Unary::positive:
      return PyNumber_Positive(value.object);
    case Unary::negative:
      return PyNumber_Negative(value.object);
    case Unary::invert:
      return PyNumber_Invert(value.object);
    case Unary::logical_not:
      break;
  }
  const int is_true = PyObject_IsTrue(value.object);
  return is_true < 0 ? nullptr : to_bool(is_true == 0);
}

PyObject* Operations::binary(Activation& a, int op, Operand left, Operand right) {
  const bool adds = op == NB_ADD || op == NB_INPLACE_ADD;
  if (adds && PyUnicode_CheckExact(left.object) && PyUnicode_CheckExact(right.object)) {
    PyObject* result = append_in_place(a, left.object, right.object);
    if (result != nullptr || PyErr_Occurred() != nullptr) return result;
  }
  return binary_functions[static_cast<std::size_t>(op)](left.object, right.object);
}

PyObject* Operations::compare(Activation& /*a*/, int op, Operand left, Operand right) {
  return PyObject_RichCompare(left.object, right.object, op);
}

PyObject* Operations::is(Activation& /*a*/, Operand left, Operand right, bool invert) {
  return to_bool((left.object == right.object) != invert);
}

PyObject* Operations::contains(Activation& /*a*/, Operand item, Operand container, bool invert) {
  const int contains = PySequence_Contains(container.object, item.object);
  return contains < 0 ? nullptr : to_bool((contains != 0) != invert);
}

int Operations::is_true(Activation& /*a*/, Operand value) { return PyObject_IsTrue(value.object); }

bool Operations::is_none(Activation& /*a*/, Operand value) { return value.object == Py_None; }

PyObject* Operations::load_attr(Activation& /*a*/, Operand owner, PyObject* name) {
  return PyObject_GetAttr(owner.object, name);
}

PyObject* Operations::load_method(Activation& /*a*/, Operand owner, PyObject* name,
                                  bool& is_method) {
  PyObject* method = nullptr;
  is_method = _PyObject_GetMethod(owner.object, name, &method) != 0;
  return method;
}

bool Operations::store_attr(Activation& /*a*/, Operand owner, PyObject* name, Operand value) {
  return PyObject_SetAttr(owner.object, name, value.object) == 0;
}

bool Operations::delete_attr(Activation& /*a*/, Operand owner, PyObject* name) {
  return PyObject_SetAttr(owner.object, name, nullptr) == 0;
}

PyObject* Operations::load_item(Activation& /*a*/, Operand container, Operand key) {
  return PyObject_GetItem(container.object, key.object);
}

bool Operations::store_item(Activation& /*a*/, Operand container, Operand key, Operand value) {
  return PyObject_SetItem(container.object, key.object, value.object) == 0;
}

bool Operations::delete_item(Activation& /*a*/, Operand container, Operand key) {
  return PyObject_DelItem(container.object, key.object) == 0;
}

PyObject* Operations::get_iter(Activation& /*a*/, Operand iterable) {
  return PyObject_GetIter(iterable.object);
}

PyObject* Operations::next(Activation& /*a*/, Operand iterator) {
  PyObject* item = Py_TYPE(iterator.object)->tp_iternext(iterator.object);
  if (item == nullptr && PyErr_Occurred() != nullptr &&
      PyErr_ExceptionMatches(PyExc_StopIteration) != 0) {
    PyErr_Clear();
  }
  return item;
}

PyObject* Operations::get_yield_from_iter(Activation& a, Operand iterable) {
  if (PyCoro_CheckExact(iterable.object)) {
    if ((a.code->co_flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE)) == 0) {
      PyErr_SetString(PyExc_TypeError,
                      "cannot 'yield from' a coroutine object in a non-coroutine generator");
      return nullptr;
    }
    return Py_NewRef(iterable.object);
  }
  if (PyGen_CheckExact(iterable.object)) return Py_NewRef(iterable.object);
  return PyObject_GetIter(iterable.object);
}

PySendResult Operations::send(Activation& /*a*/, Operand receiver, Operand value,
                              PyObject** result) {
  return PyIter_Send(receiver.object, value.object, result);
}

void Operations::yielding(Activation& /*a*/, Operand /*value*/) {}

PyObject* Operations::before_with(Activation& /*a*/, Operand manager, PyObject** exit) {
  static PyObject* const enter_name = PyUnicode_InternFromString("__enter__");
  static PyObject* const exit_name = PyUnicode_InternFromString("__exit__");
  const char* type = Py_TYPE(manager.object)->tp_name;
  const Reference enter = Reference::steal(assay_lookup_special(manager.object, enter_name));
  if (!enter) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the context manager protocol",
                   type);
    }
    return nullptr;
  }
  Reference leave = Reference::steal(assay_lookup_special(manager.object, exit_name));
  if (!leave) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_Format(PyExc_TypeError,
                   "'%.200s' object does not support the context manager protocol (missed __exit__ "
                   "method)",
                   type);
    }
    return nullptr;
  }
  PyObject* value = PyObject_CallNoArgs(enter.get());
  if (value != nullptr) *exit = leave.release();
  return value;
}

PyObject* Operations::with_except_start(Activation& /*a*/, PyObject* exit, PyObject* exception) {
  const Reference traceback = Reference::steal(PyException_GetTraceback(exception));
  // The first slot is for the callee.
  std::array<PyObject*, 4> arguments = {nullptr, PyExceptionInstance_Class(exception), exception,
                                        traceback ? traceback.get() : Py_None};
  return PyObject_Vectorcall(exit, arguments.data() + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET,
                             nullptr);
}

}  // namespace assay::capture
