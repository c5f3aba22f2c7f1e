#include "capture/instructions.h"

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "capture/operations.h"
#include "capture/reference.h"
#include "capture/stack.h"

namespace assay::capture {

namespace {

// Flags of MAKE_FUNCTION and CALL_FUNCTION_EX, as the compiler sets them.
constexpr int kDefaults = 1;
constexpr int kKeywordDefaults = 2;
constexpr int kAnnotations = 4;
constexpr int kClosure = 8;
constexpr int kHasKeywords = 1;

Source* const* origins_at(Activation& a, PyObject** slot) { return a.origins + (slot - a.locals); }

}  // namespace

bool load_global(Activation& a, int arg) {
  PyObject* value = a.operations->load_global(a, name_at(a.code, arg >> 1));
  if (value == nullptr) return false;
  if ((arg & 1) != 0) push(a, nullptr);
  push(a, value);
  return true;
}

bool load_method(Activation& a, PyObject* name) {
  const Operand owner = peek(a, 1);
  bool is_method = false;
  PyObject* function = a.operations->load_method(a, owner, name, is_method);
  if (function == nullptr) return false;
  if (is_method) {
    take(a);
    push(a, function);
    push(a, owner.object, owner.origin);
  } else {
    drop(a, 1);
    push(a, nullptr);
    push(a, function);
  }
  return true;
}

bool call(Activation& a, int count, PyObject* names) {
  // method, self, arguments; or null, callable, arguments.
  const bool is_method = object_at(a, count + 2) != nullptr;
  const int arguments = count + (is_method ? 1 : 0);
  PyObject** first = a.top - arguments;
  CallOperands operands;
  operands.callable = peek(a, arguments + 1);
  operands.args = first;
  operands.origins = origins_at(a, first);
  operands.count = static_cast<std::size_t>(arguments);
  operands.names = names;
  PyObject* result = a.operations->call(a, operands);
  return replace(a, count + 2, result, std::exchange(a.returned_origin, nullptr));
}

bool call_function_ex(Activation& a, int flags) {
  // null, callable, arguments, perhaps keyword arguments
  const int keywords = (flags & kHasKeywords) != 0 ? 1 : 0;
  const Operand kwargs = keywords != 0 ? peek(a, 1) : Operand{};
  PyObject* result = a.operations->call_ex(a, peek(a, keywords + 2), peek(a, keywords + 1), kwargs);
  return replace(a, keywords + 3, result, std::exchange(a.returned_origin, nullptr));
}

bool make_function(Activation& a, int flags) {
  int depth = 1;
  PyObject* code = object_at(a, depth);
  const auto next_if = [&](int flag) {
    return (flags & flag) != 0 ? object_at(a, ++depth) : nullptr;
  };
  PyObject* closure = next_if(kClosure);
  PyObject* annotations = next_if(kAnnotations);
  PyObject* keyword_defaults = next_if(kKeywordDefaults);
  PyObject* defaults = next_if(kDefaults);
  PyObject* function =
      a.operations->make_function(a, code, defaults, keyword_defaults, annotations, closure);
  return replace(a, depth, function);
}

bool unpack(Activation& a, int before, int after) {
  const int count = before + (after >= 0 ? after + 1 : 0);
  // The stack has room for the values only once the iterable is gone.
  std::array<PyObject*, 16> few;
  std::unique_ptr<PyObject*[]> many;
  PyObject** values = few.data();
  if (static_cast<std::size_t>(count) > few.size()) {
    many = std::make_unique<PyObject*[]>(static_cast<std::size_t>(count));
    values = many.get();
  }
  if (!a.operations->unpack(a, peek(a, 1), before, after, values)) return false;
  PyObject* iterable = take(a);
  for (int i = 0; i < count; ++i) push(a, values[i]);
  Py_DECREF(iterable);
  return true;
}

bool dict_merge(Activation& a, int arg) {
  const bool done =
      a.operations->dict_merge(a, object_at(a, arg + 1), peek(a, 1), object_at(a, arg + 3));
  return consume(a, 1, done);
}

bool build_slice(Activation& a, int count) {
  const Operand step = count == 3 ? peek(a, 1) : Operand{};
  return replace(a, count, a.operations->build_slice(a, peek(a, count), peek(a, count - 1), step));
}

bool format_value(Activation& a, int flags) {
  // The flags are those of the compiler: a conversion, and whether there is a format.
  constexpr int kConversion = 0x3;
  constexpr int kHasFormat = 0x4;
  const int count = (flags & kHasFormat) != 0 ? 2 : 1;
  const Operand format = count == 2 ? peek(a, 1) : Operand{nullptr, nullptr};
  return replace(a, count,
                 a.operations->format_value(a, peek(a, count), flags & kConversion, format));
}

bool before_with(Activation& a) {
  PyObject* exit = nullptr;
  PyObject* value = a.operations->before_with(a, peek(a, 1), &exit);
  if (value == nullptr) return false;
  replace(a, 1, exit);
  push(a, value);
  return true;
}

bool send(Activation& a, int jump) {
  PyObject* value = nullptr;
  switch (a.operations->send(a, peek(a, 2), peek(a, 1), &value)) {
    case PYGEN_ERROR:
      return false;
    case PYGEN_RETURN:
      a.next += jump;
      return replace(a, 2, value);
    case PYGEN_NEXT:
      return replace(a, 1, value);
  }
  return false;
}

bool for_iter(Activation& a, int jump) {
  PyObject* value = a.operations->next(a, peek(a, 1));
  if (value != nullptr) {
    push(a, value);
    return true;
  }
  if (PyErr_Occurred() != nullptr) return false;
  drop(a, 1);
  a.next += jump;
  return true;
}

bool check_exception_match(Activation& a) {
  const int matches = a.operations->exception_matches(a, object_at(a, 2), peek(a, 1));
  if (matches < 0) return false;
  return replace(a, 1, Py_NewRef(matches != 0 ? Py_True : Py_False));
}

bool raise(Activation& a, int count) {
  const Operand cause = count == 2 ? peek(a, 1) : Operand{};
  const Operand exception = count >= 1 ? peek(a, count) : Operand{};
  a.operations->raise(a, exception, cause);
  return false;
}

bool make_cell(Activation& a, int index) {
  PyObject* cell = a.operations->make_cell(a, {a.locals[index], a.origins[index]});
  if (cell == nullptr) return false;
  set_local(a, index, cell);
  return true;
}

void copy_free_variables(Activation& a, int count) {
  PyObject* closure = a.frame->f_func->func_closure;
  const int offset = a.code->co_nlocals + a.code->co_nplaincellvars;
  for (int i = 0; i < count; ++i) {
    a.locals[offset + i] = Py_NewRef(PyTuple_GET_ITEM(closure, i));
  }
  a.operations->copied_free_variables(a, reinterpret_cast<PyObject*>(a.frame->f_func));
}

void push_exception_info(Activation& a) {
  PyObject* exception = object_at(a, 1);
  a.operations->handling(a, exception);
  // The exception that was handled before takes the place of the new one, which goes on top.
  _PyErr_StackItem* handled = a.thread->exc_info;
  take(a);
  push(a, handled->exc_value != nullptr ? handled->exc_value : Py_NewRef(Py_None));
  push(a, Py_NewRef(exception));
  handled->exc_value = exception;
}

void pop_except(Activation& a) {
  _PyErr_StackItem* handled = a.thread->exc_info;
  PyObject* finished = handled->exc_value;
  handled->exc_value = take(a);
  Py_XDECREF(finished);
}

bool setup_annotations(Activation& a) {
  a.operations->unusual(a, "SETUP_ANNOTATIONS");
  PyObject* namespace_ = a.frame->f_locals;
  if (namespace_ == nullptr) {
    PyErr_Format(PyExc_SystemError, "no locals found when setting up annotations");
    return false;
  }
  const Reference name = Reference::steal(PyUnicode_InternFromString("__annotations__"));
  if (!name) return false;
  if (Reference::steal(PyObject_GetItem(namespace_, name.get()))) return true;
  if (PyErr_ExceptionMatches(PyExc_KeyError) == 0) return false;
  PyErr_Clear();
  const Reference annotations = Reference::steal(PyDict_New());
  return annotations && PyObject_SetItem(namespace_, name.get(), annotations.get()) == 0;
}

}  // namespace assay::capture
