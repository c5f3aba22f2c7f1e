/// \file What instructions do to objects, one function per kind of operation. The loop (loop.cpp)
/// moves values between locals and the stack, jumps and handles exceptions; everything that looks
/// at an object, makes one or calls one goes through here. `Operations` itself does exactly what
/// CPython does; the recorder overrides what it wants to see.
///
/// Operands are borrowed, and stay on the stack until the operation has returned: inside an
/// operation locals and stack are as at the start of the instruction. Results are new references,
/// or null with an exception set; functions that return `bool` return false with an exception set.
/// Nothing here may throw: CPython's frames are between us and whoever would catch it.
#pragma once

#include <cstddef>

#include "capture/activation.h"

namespace assay::capture {

/// The callable and arguments of a call as they lie on the stack. `origins` is parallel to `args`.
/// With `names` (a tuple), the last arguments are keyword arguments, as in vectorcall.
struct CallOperands {
  Operand callable;
  PyObject* const* args = nullptr;  ///< args[-1] may be overwritten for the time of the call.
  Source* const* origins = nullptr;
  std::size_t count = 0;      ///< Keyword arguments included.
  PyObject* names = nullptr;  ///< May be null.
};

enum class Unary { positive, negative, invert, logical_not };

class Operations {
 public:
  virtual ~Operations() = default;

  /// Told when the loop starts on a frame, before its first instruction, and when it stops: the
  /// frame has returned or yielded `result`, or has raised (`result` is null and an exception is
  /// set), or CPython executes the rest of it (`result` is null).
  virtual void entered(Activation& a);
  virtual void leaving(Activation& a);

  // Names and cells. `cell` is a cell object.
  virtual PyObject* load_global(Activation& a, PyObject* name);
  virtual bool store_global(Activation& a, PyObject* name, Operand value);
  virtual bool delete_global(Activation& a, PyObject* name);
  virtual PyObject* load_name(Activation& a, PyObject* name);
  virtual bool store_name(Activation& a, PyObject* name, Operand value);
  virtual bool delete_name(Activation& a, PyObject* name);
  /// `index` is into localsplus, for the name in the message of an unbound variable.
  virtual PyObject* load_cell(Activation& a, PyObject* cell, int index);
  virtual bool store_cell(Activation& a, PyObject* cell, Operand value);
  virtual bool delete_cell(Activation& a, PyObject* cell, int index);
  virtual PyObject* load_class_cell(Activation& a, PyObject* cell, int index);
  /// A new cell that holds `value` (null: empty). MAKE_CELL.
  virtual PyObject* make_cell(Activation& a, Operand value);
  /// Told that COPY_FREE_VARS has put the closure's cells into the frame.
  virtual void copied_free_variables(Activation& a, PyObject* function);
  /// A constant of the code object was loaded (LOAD_CONST).
  virtual void loaded_constant(Activation& a, PyObject* constant);

  // Operators.
  virtual PyObject* unary(Activation& a, Unary op, Operand value);
  /// `op` is BINARY_OP's argument (NB_ADD, NB_INPLACE_ADD, ...).
  virtual PyObject* binary(Activation& a, int op, Operand left, Operand right);
  /// `op` is Py_LT .. Py_GE.
  virtual PyObject* compare(Activation& a, int op, Operand left, Operand right);
  virtual PyObject* is(Activation& a, Operand left, Operand right, bool invert);
  virtual PyObject* contains(Activation& a, Operand item, Operand container, bool invert);
  /// For jumps: 1, 0, or -1 with an exception set.
  virtual int is_true(Activation& a, Operand value);
  /// For POP_JUMP_IF_NONE and its like.
  virtual bool is_none(Activation& a, Operand value);

  // Attributes and items.
  virtual PyObject* load_attr(Activation& a, Operand owner, PyObject* name);
  /// LOAD_METHOD: returns the function and sets `is_method` if the owner is to be passed as the
  /// first argument; otherwise the attribute itself.
  virtual PyObject* load_method(Activation& a, Operand owner, PyObject* name, bool& is_method);
  virtual bool store_attr(Activation& a, Operand owner, PyObject* name, Operand value);
  virtual bool delete_attr(Activation& a, Operand owner, PyObject* name);
  virtual PyObject* load_item(Activation& a, Operand container, Operand key);
  virtual bool store_item(Activation& a, Operand container, Operand key, Operand value);
  virtual bool delete_item(Activation& a, Operand container, Operand key);

  // Building. `items` lie on the stack; origins are parallel.
  virtual PyObject* build_tuple(Activation& a, PyObject* const* items, Source* const* origins,
                                std::size_t count);
  virtual PyObject* build_list(Activation& a, PyObject* const* items, Source* const* origins,
                               std::size_t count);
  virtual PyObject* build_set(Activation& a, PyObject* const* items, Source* const* origins,
                              std::size_t count);
  /// `items` are keys and values in turn.
  virtual PyObject* build_map(Activation& a, PyObject* const* items, Source* const* origins,
                              std::size_t pairs);
  /// `keys` is a constant tuple.
  virtual PyObject* build_const_key_map(Activation& a, PyObject* keys, PyObject* const* values,
                                        Source* const* origins);
  virtual PyObject* build_string(Activation& a, PyObject* const* items, Source* const* origins,
                                 std::size_t count);
  virtual PyObject* build_slice(Activation& a, Operand start, Operand stop, Operand step);
  /// `spec` has no object if there is none.
  virtual PyObject* format_value(Activation& a, Operand value, int conversion, Operand spec);
  virtual bool list_append(Activation& a, PyObject* list, Operand item);
  virtual bool list_extend(Activation& a, PyObject* list, Operand iterable);
  virtual PyObject* list_to_tuple(Activation& a, PyObject* list);
  virtual bool set_add(Activation& a, PyObject* set, Operand item);
  virtual bool set_update(Activation& a, PyObject* set, Operand iterable);
  virtual bool map_add(Activation& a, PyObject* dict, Operand key, Operand value);
  virtual bool dict_update(Activation& a, PyObject* dict, Operand other);
  /// As dict_update, but a key that is there already is an error about calling `function`.
  virtual bool dict_merge(Activation& a, PyObject* dict, Operand other, PyObject* function);
  /// UNPACK_SEQUENCE and UNPACK_EX: writes `before` items, the list of those in between if
  /// `after` >= 0, and `after` items to `out` from last to first, so that the first item ends up
  /// at the top of the stack: out[0] is the deepest.
  virtual bool unpack(Activation& a, Operand iterable, int before, int after, PyObject** out);

  // Iteration.
  virtual PyObject* get_iter(Activation& a, Operand iterable);
  /// The next item; null without an exception at the end.
  virtual PyObject* next(Activation& a, Operand iterator);
  /// GET_YIELD_FROM_ITER.
  virtual PyObject* get_yield_from_iter(Activation& a, Operand iterable);
  /// SEND: as PyIter_Send.
  virtual PySendResult send(Activation& a, Operand receiver, Operand value, PyObject** result);
  /// Told before a generator suspends with `value`.
  virtual void yielding(Activation& a, Operand value);

  // Calls.
  virtual PyObject* call(Activation& a, const CallOperands& operands);
  /// CALL_FUNCTION_EX; `args` is any iterable, `kwargs` a mapping or null.
  virtual PyObject* call_ex(Activation& a, Operand callable, Operand args, Operand kwargs);
  /// MAKE_FUNCTION; the last four may be null.
  virtual PyObject* make_function(Activation& a, PyObject* code, PyObject* defaults,
                                  PyObject* kwdefaults, PyObject* annotations, PyObject* closure);
  virtual PyObject* load_build_class(Activation& a);

  // Context managers. BEFORE_WITH: `exit` gets the bound __exit__; the result is __enter__'s.
  virtual PyObject* before_with(Activation& a, Operand manager, PyObject** exit);
  /// WITH_EXCEPT_START.
  virtual PyObject* with_except_start(Activation& a, PyObject* exit, PyObject* exception);

  // Exceptions.
  /// RAISE_VARARGS with `exception` and `cause`, null where absent. Always sets an exception.
  virtual void raise(Activation& a, Operand exception, Operand cause);
  /// CHECK_EXC_MATCH: 1, 0, or -1 with an exception set.
  virtual int exception_matches(Activation& a, PyObject* exception, Operand type);
  /// Told that the frame starts to handle `exception` (PUSH_EXC_INFO).
  virtual void handling(Activation& a, PyObject* exception);

  // Imports.
  virtual PyObject* import_name(Activation& a, PyObject* name, Operand from_list, Operand level);
  virtual PyObject* import_from(Activation& a, Operand module, PyObject* name);

  // Pattern matching.
  virtual PyObject* match_keys(Activation& a, Operand subject, Operand keys);
  virtual PyObject* match_class(Activation& a, Operand subject, Operand type, int count,
                                PyObject* names);
  /// MATCH_MAPPING, MATCH_SEQUENCE.
  virtual bool matches_kind(Activation& a, Operand subject, unsigned long type_flag);
  virtual PyObject* get_len(Activation& a, Operand value);

  /// Told before any instruction that has no operation of its own here (IMPORT_STAR, async, class
  /// bodies, except*, ...): the recorder stops recording at it.
  virtual void unusual(Activation& a, const char* what);
};

}  // namespace assay::capture
