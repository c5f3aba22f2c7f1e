#include "capture/execute.h"

#include <cstddef>
#include <utility>

#include "capture/errors.h"
#include "capture/exceptions.h"
#include "capture/instructions.h"
#include "capture/operations.h"
#include "capture/stack.h"

namespace assay::capture {

namespace {

Outcome done_if(bool ok) { return ok ? Outcome::done : Outcome::raised; }
Outcome interruptible_if(bool ok) { return ok ? Outcome::interruptible : Outcome::raised; }

bool load_fast(Activation& a, int index) {
  PyObject* value = a.locals[index];
  if (value == nullptr) {
    raise_unbound(a.code, index);
    return false;
  }
  push(a, Py_NewRef(value), a.origins[index]);
  return true;
}

bool delete_fast(Activation& a, int index) {
  if (a.locals[index] == nullptr) {
    raise_unbound(a.code, index);
    return false;
  }
  set_local(a, index, nullptr);
  return true;
}

Outcome jump(Activation& a, int distance) {
  a.next += distance;
  return distance < 0 ? Outcome::interruptible : Outcome::done;
}

// JUMP_IF_FALSE_OR_POP, JUMP_IF_TRUE_OR_POP
Outcome jump_if(Activation& a, bool expected, int distance) {
  const int is_true = a.operations->is_true(a, peek(a, 1));
  if (is_true < 0) return Outcome::raised;
  if ((is_true != 0) == expected) return jump(a, distance);
  drop(a, 1);
  return Outcome::done;
}

Outcome pop_jump_if(Activation& a, bool expected, int distance) {
  const int is_true = a.operations->is_true(a, peek(a, 1));
  if (is_true < 0) return Outcome::raised;
  drop(a, 1);
  return (is_true != 0) == expected ? jump(a, distance) : Outcome::done;
}

Outcome pop_jump_if_none(Activation& a, bool expected, int distance) {
  const bool is_none = a.operations->is_none(a, peek(a, 1));
  drop(a, 1);
  return is_none == expected ? jump(a, distance) : Outcome::done;
}

Outcome leave_to_cpython(Activation& a, const char* what) {
  a.operations->unusual(a, what);
  // It may have ended a segment that must not end.
  return PyErr_Occurred() == nullptr ? Outcome::not_executed : Outcome::raised;
}

// `raise` without arguments goes on with the traceback of the exception that is being handled.
Outcome reraise_handled(Activation& a) {
  PyObject* handled = PyErr_GetHandledException();
  Py_XDECREF(handled);
  raise(a, 0);
  return handled != nullptr ? Outcome::reraised : Outcome::raised;
}

}  // namespace

Outcome execute(Activation& a, const Instruction& instruction, PyObject*& keyword_names) {
  Operations& operations = *a.operations;
  const int arg = instruction.arg;
  const auto name = [&] { return name_at(a.code, arg); };
  // For instructions that take a number of values.
  const auto items = [&](int n) { return a.top - n; };
  const auto origins = [&](int n) { return a.origins + (a.top - n - a.locals); };
  const auto count = static_cast<std::size_t>(arg);

  switch (instruction.opcode) {
    case NOP:
      return Outcome::done;
    case RESUME:
      // 2 and 3: after `yield from` and `await`, where the innermost generator looks instead.
      return arg < 2 ? Outcome::interruptible : Outcome::done;

    // The stack and locals
    case POP_TOP:
      drop(a, 1);
      return Outcome::done;
    case PUSH_NULL:
      push(a, nullptr);
      return Outcome::done;
    case COPY: {
      const Operand value = peek(a, arg);
      push(a, Py_NewRef(value.object), value.origin);
      return Outcome::done;
    }
    case SWAP:
      std::swap(a.top[-1], a.top[-arg]);
      std::swap(origin_of(a, a.top - 1), origin_of(a, a.top - arg));
      return Outcome::done;
    case LOAD_CONST: {
      PyObject* constant = constant_at(a.code, arg);
      operations.loaded_constant(a, constant);
      push(a, Py_NewRef(constant));
      return Outcome::done;
    }
    case LOAD_FAST:
    case LOAD_CLOSURE:
      return done_if(load_fast(a, arg));
    case STORE_FAST: {
      const Operand value = peek(a, 1);
      take(a);
      set_local(a, arg, value.object, value.origin);
      return Outcome::done;
    }
    case DELETE_FAST:
      return done_if(delete_fast(a, arg));

    // Names and cells
    case LOAD_GLOBAL:
      return done_if(load_global(a, arg));
    case STORE_GLOBAL:
      return done_if(consume(a, 1, operations.store_global(a, name(), peek(a, 1))));
    case DELETE_GLOBAL:
      return done_if(operations.delete_global(a, name()));
    case LOAD_NAME:
      return done_if(replace(a, 0, operations.load_name(a, name())));
    case STORE_NAME:
      return done_if(consume(a, 1, operations.store_name(a, name(), peek(a, 1))));
    case DELETE_NAME:
      return done_if(operations.delete_name(a, name()));
    case MAKE_CELL:
      return done_if(make_cell(a, arg));
    case COPY_FREE_VARS:
      copy_free_variables(a, arg);
      return Outcome::done;
    case LOAD_DEREF:
      return done_if(replace(a, 0, operations.load_cell(a, a.locals[arg], arg)));
    case LOAD_CLASSDEREF:
      return done_if(replace(a, 0, operations.load_class_cell(a, a.locals[arg], arg)));
    case STORE_DEREF:
      return done_if(consume(a, 1, operations.store_cell(a, a.locals[arg], peek(a, 1))));
    case DELETE_DEREF:
      return done_if(operations.delete_cell(a, a.locals[arg], arg));
    case LOAD_BUILD_CLASS:
      return done_if(replace(a, 0, operations.load_build_class(a)));
    case LOAD_ASSERTION_ERROR:
      push(a, Py_NewRef(PyExc_AssertionError));
      return Outcome::done;
    case SETUP_ANNOTATIONS:
      return done_if(setup_annotations(a));

    // Operators
    case UNARY_POSITIVE:
      return done_if(replace(a, 1, operations.unary(a, Unary::positive, peek(a, 1))));
    case UNARY_NEGATIVE:
      return done_if(replace(a, 1, operations.unary(a, Unary::negative, peek(a, 1))));
    case UNARY_INVERT:
      return done_if(replace(a, 1, operations.unary(a, Unary::invert, peek(a, 1))));
    case UNARY_NOT:
      return done_if(replace(a, 1, operations.unary(a, Unary::logical_not, peek(a, 1))));
    case BINARY_OP:
      return done_if(replace(a, 2, operations.binary(a, arg, peek(a, 2), peek(a, 1))));
    case COMPARE_OP:
      return done_if(replace(a, 2, operations.compare(a, arg, peek(a, 2), peek(a, 1))));
    case IS_OP:
      return done_if(replace(a, 2, operations.is(a, peek(a, 2), peek(a, 1), arg != 0)));
    case CONTAINS_OP:
      return done_if(replace(a, 2, operations.contains(a, peek(a, 2), peek(a, 1), arg != 0)));

    // Attributes and items
    case LOAD_ATTR:
      return done_if(replace(a, 1, operations.load_attr(a, peek(a, 1), name())));
    case LOAD_METHOD:
      return done_if(load_method(a, name()));
    case STORE_ATTR:
      return done_if(consume(a, 2, operations.store_attr(a, peek(a, 1), name(), peek(a, 2))));
    case DELETE_ATTR:
      return done_if(consume(a, 1, operations.delete_attr(a, peek(a, 1), name())));
    case BINARY_SUBSCR:
      return done_if(replace(a, 2, operations.load_item(a, peek(a, 2), peek(a, 1))));
    case STORE_SUBSCR:
      return done_if(consume(a, 3, operations.store_item(a, peek(a, 2), peek(a, 1), peek(a, 3))));
    case DELETE_SUBSCR:
      return done_if(consume(a, 2, operations.delete_item(a, peek(a, 2), peek(a, 1))));

    // Building
    case BUILD_TUPLE:
      return done_if(replace(a, arg, operations.build_tuple(a, items(arg), origins(arg), count)));
    case BUILD_LIST:
      return done_if(replace(a, arg, operations.build_list(a, items(arg), origins(arg), count)));
    case BUILD_SET:
      return done_if(replace(a, arg, operations.build_set(a, items(arg), origins(arg), count)));
    case BUILD_MAP:
      return done_if(
          replace(a, 2 * arg, operations.build_map(a, items(2 * arg), origins(2 * arg), count)));
    case BUILD_CONST_KEY_MAP:
      return done_if(replace(
          a, arg + 1,
          operations.build_const_key_map(a, object_at(a, 1), items(arg + 1), origins(arg + 1))));
    case BUILD_STRING:
      return done_if(replace(a, arg, operations.build_string(a, items(arg), origins(arg), count)));
    case BUILD_SLICE:
      return done_if(build_slice(a, arg));
    case FORMAT_VALUE:
      return done_if(format_value(a, arg));
    case LIST_APPEND:
      return done_if(consume(a, 1, operations.list_append(a, object_at(a, arg + 1), peek(a, 1))));
    case LIST_EXTEND:
      return done_if(consume(a, 1, operations.list_extend(a, object_at(a, arg + 1), peek(a, 1))));
    case LIST_TO_TUPLE:
      return done_if(replace(a, 1, operations.list_to_tuple(a, object_at(a, 1))));
    case SET_ADD:
      return done_if(consume(a, 1, operations.set_add(a, object_at(a, arg + 1), peek(a, 1))));
    case SET_UPDATE:
      return done_if(consume(a, 1, operations.set_update(a, object_at(a, arg + 1), peek(a, 1))));
    case MAP_ADD:
      return done_if(
          consume(a, 2, operations.map_add(a, object_at(a, arg + 2), peek(a, 2), peek(a, 1))));
    case DICT_UPDATE:
      return done_if(consume(a, 1, operations.dict_update(a, object_at(a, arg + 1), peek(a, 1))));
    case DICT_MERGE:
      return done_if(dict_merge(a, arg));
    case UNPACK_SEQUENCE:
      return done_if(unpack(a, arg, -1));
    case UNPACK_EX:
      return done_if(unpack(a, arg & 0xFF, arg >> 8));

    // Jumps and iteration
    case JUMP_FORWARD:
      return jump(a, arg);
    case JUMP_BACKWARD:
      return jump(a, -arg);
    case JUMP_BACKWARD_NO_INTERRUPT:
      jump(a, -arg);
      return Outcome::done;
    case JUMP_IF_FALSE_OR_POP:
      return jump_if(a, false, arg);
    case JUMP_IF_TRUE_OR_POP:
      return jump_if(a, true, arg);
    case POP_JUMP_FORWARD_IF_FALSE:
      return pop_jump_if(a, false, arg);
    case POP_JUMP_FORWARD_IF_TRUE:
      return pop_jump_if(a, true, arg);
    case POP_JUMP_BACKWARD_IF_FALSE:
      return pop_jump_if(a, false, -arg);
    case POP_JUMP_BACKWARD_IF_TRUE:
      return pop_jump_if(a, true, -arg);
    case POP_JUMP_FORWARD_IF_NONE:
      return pop_jump_if_none(a, true, arg);
    case POP_JUMP_FORWARD_IF_NOT_NONE:
      return pop_jump_if_none(a, false, arg);
    case POP_JUMP_BACKWARD_IF_NONE:
      return pop_jump_if_none(a, true, -arg);
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
      return pop_jump_if_none(a, false, -arg);
    case GET_ITER:
      return done_if(replace(a, 1, operations.get_iter(a, peek(a, 1))));
    case GET_YIELD_FROM_ITER:
      return done_if(replace(a, 1, operations.get_yield_from_iter(a, peek(a, 1))));
    case FOR_ITER:
      return done_if(for_iter(a, arg));
    case SEND:
      return done_if(send(a, arg));

    // Calls
    case KW_NAMES:
      keyword_names = constant_at(a.code, arg);
      return Outcome::unfinished;
    case PRECALL:
      return Outcome::unfinished;
    case CALL:
      return interruptible_if(call(a, arg, std::exchange(keyword_names, nullptr)));
    case CALL_FUNCTION_EX:
      return interruptible_if(call_function_ex(a, arg));
    case MAKE_FUNCTION:
      return done_if(make_function(a, arg));
    case RETURN_VALUE: {
      const Operand value = peek(a, 1);
      a.result_origin = value.origin;
      a.result = take(a);
      return Outcome::returned;
    }
    case YIELD_VALUE:
      operations.yielding(a, peek(a, 1));
      a.result = take(a);
      return Outcome::yielded;

    // Exceptions and context managers
    case BEFORE_WITH:
      return done_if(before_with(a));
    case WITH_EXCEPT_START:
      return done_if(
          replace(a, 0, operations.with_except_start(a, object_at(a, 4), object_at(a, 1))));
    case PUSH_EXC_INFO:
      push_exception_info(a);
      return Outcome::done;
    case POP_EXCEPT:
      pop_except(a);
      return Outcome::done;
    case CHECK_EXC_MATCH:
      return done_if(check_exception_match(a));
    case RERAISE:
      return reraise(a, arg) ? Outcome::reraised : Outcome::raised;
    case RAISE_VARARGS:
      if (arg == 0) return reraise_handled(a);
      raise(a, arg);
      return Outcome::raised;

    // Imports and pattern matching
    case IMPORT_NAME:
      return done_if(replace(a, 2, operations.import_name(a, name(), peek(a, 1), peek(a, 2))));
    case IMPORT_FROM:
      return done_if(replace(a, 0, operations.import_from(a, peek(a, 1), name())));
    case MATCH_KEYS:
      return done_if(replace(a, 0, operations.match_keys(a, peek(a, 2), peek(a, 1))));
    case MATCH_CLASS:
      return done_if(
          replace(a, 3, operations.match_class(a, peek(a, 3), peek(a, 2), arg, object_at(a, 1))));
    case MATCH_MAPPING:
    case MATCH_SEQUENCE: {
      const unsigned long flag = instruction.opcode == MATCH_MAPPING
                                     ? static_cast<unsigned long>(Py_TPFLAGS_MAPPING)
                                     : static_cast<unsigned long>(Py_TPFLAGS_SEQUENCE);
      push(a, Py_NewRef(operations.matches_kind(a, peek(a, 1), flag) ? Py_True : Py_False));
      return Outcome::done;
    }
    case GET_LEN:
      return done_if(replace(a, 0, operations.get_len(a, peek(a, 1))));

    // Not worth having twice. What is async never comes here.
    case RETURN_GENERATOR:
      return leave_to_cpython(a, "creating a generator");
    case IMPORT_STAR:
      return leave_to_cpython(a, "import *");
    case PRINT_EXPR:
      return leave_to_cpython(a, "printing an expression");
    case CHECK_EG_MATCH:
    case PREP_RERAISE_STAR:
      return leave_to_cpython(a, "except*");
    default:
      return leave_to_cpython(a, "an unknown instruction");
  }
}

}  // namespace assay::capture
