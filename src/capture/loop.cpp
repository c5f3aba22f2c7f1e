#include "capture/loop.h"

#include <alloca.h>
#include <opcode.h>

#include <cstring>
#include <memory>

#include "capture/errors.h"
#include "capture/exceptions.h"
#include "capture/instructions.h"
#include "capture/operations.h"
#include "capture/stack.h"
#include "capture/tracing.h"

namespace assay::capture {

namespace {

thread_local Activation* innermost = nullptr;

// One instruction with its EXTENDED_ARG prefixes folded.
struct Instruction {
  int index = 0;  // of its opcode, behind the prefixes
  int opcode = 0;
  int arg = 0;
  int end = 0;  // index of the instruction behind it and its inline caches
};

// CPython may have specialized the code while we look at it.
Instruction decode(const _Py_CODEUNIT* code, int index) {
  Instruction instruction;
  instruction.index = index;
  instruction.opcode = _PyOpcode_Deopt[_Py_OPCODE(code[index])];
  instruction.arg = _Py_OPARG(code[index]);
  while (instruction.opcode == EXTENDED_ARG) {
    const _Py_CODEUNIT unit = code[++instruction.index];
    instruction.opcode = _PyOpcode_Deopt[_Py_OPCODE(unit)];
    instruction.arg = instruction.arg << 8 | _Py_OPARG(unit);
  }
  instruction.end = instruction.index + 1 + _PyOpcode_Caches[instruction.opcode];
  return instruction;
}

// How an instruction ended.
enum class Outcome {
  done,
  interruptible,  // done, and this is a place to look for signals and other threads
  raised,
  reraised,  // raised, but the traceback knows this frame already
  returned,
  yielded,
  unfinished,    // the rest of a call follows: KW_NAMES, PRECALL
  not_executed,  // left to CPython
};

Outcome done_if(bool ok) { return ok ? Outcome::done : Outcome::raised; }
Outcome interruptible_if(bool ok) { return ok ? Outcome::interruptible : Outcome::raised; }

class Loop {
 public:
  Loop(PyThreadState* thread, _PyInterpreterFrame* frame, Operations& operations,
       Boundary* boundary, Source** origins)
      : thread_(thread),
        frame_(frame),
        instructions_(_PyCode_CODE(frame->f_code)),
        eval_breaker_(assay_eval_breaker(thread)) {
    a_.thread = thread;
    a_.frame = frame;
    a_.code = frame->f_code;
    a_.locals = frame->localsplus;
    a_.stack = _PyFrame_Stackbase(frame);
    a_.origins = origins;
    a_.operations = &operations;
    a_.boundary = boundary;
  }

  PyObject* run(bool throwing);

 private:
  bool enter();
  void leave();
  PyObject* finish(PyObject* result);
  PyObject* hand_over(int index);
  PyObject* hand_over_raising();
  PyObject* step_until_end();
  Step ask_boundary();
  Outcome execute(const Instruction& instruction);
  Outcome jump_if(bool expected, int distance);
  Outcome pop_jump_if(bool expected, int distance);
  Outcome pop_jump_if_none(bool expected, int distance);
  Outcome jump(int distance);
  Outcome reraise_handled();
  bool load_fast(int index);
  bool delete_fast(int index);
  bool handle_exception(bool add_to_traceback, int lookup);

  PyThreadState* thread_;
  _PyInterpreterFrame* frame_;
  _Py_CODEUNIT* instructions_;
  const int* eval_breaker_;
  PyObject* keyword_names_ = nullptr;  // Borrowed; between KW_NAMES and CALL.
  Activation* outer_ = nullptr;
  _PyCFrame cframe_;
  Activation a_;
};

// Links the frame as CPython's evaluator does; false if that exceeds the recursion limit.
bool Loop::enter() {
  _PyCFrame* previous = thread_->cframe;
  cframe_.use_tracing = previous->use_tracing;
  cframe_.previous = previous;
  cframe_.current_frame = frame_;
  thread_->cframe = &cframe_;
  frame_->is_entry = true;
  frame_->previous = previous->current_frame;
  outer_ = innermost;
  innermost = &a_;
  if (thread_->recursion_remaining-- > 0 || assay_check_recursion(thread_) == 0) return true;
  --thread_->recursion_remaining;  // The check has counted back; so will leave().
  return false;
}

void Loop::leave() {
  ++thread_->recursion_remaining;
  innermost = outer_;
  thread_->cframe = cframe_.previous;
  thread_->cframe->use_tracing = cframe_.use_tracing;
}

PyObject* Loop::finish(PyObject* result) {
  _PyFrame_SetStackPointer(frame_, a_.top);
  a_.result = result;
  a_.operations->leaving(a_);
  leave();
  return a_.result;
}

// CPython executes the rest, from the instruction at `index`. Not through evaluate_natively: a hook
// below ours expects frames at their start.
PyObject* Loop::hand_over(int index) {
  frame_->prev_instr = instructions_ + index - 1;
  finish(nullptr);
  return _PyEval_EvalFrameDefault(thread_, frame_, 0);
}

// As hand_over, for an exception that is to be traced. CPython would first report the frame as
// called, as it does for generator.throw(); it does not while tracing seems to be off. Reporting
// the exception switches it on again.
PyObject* Loop::hand_over_raising() {
  _PyFrame_SetStackPointer(frame_, a_.top);
  a_.operations->unusual(a_, "tracing");
  leave();
  thread_->cframe->use_tracing = 0;
  return _PyEval_EvalFrameDefault(thread_, frame_, 1);
}

PyObject* Loop::run(bool throwing) {
  if (!enter()) {
    leave();
    return nullptr;
  }
  a_.top = _PyFrame_GetStackPointer(frame_);
  a_.instruction = _PyInterpreterFrame_LASTI(frame_);
  a_.next = a_.instruction + 1;
  // While the frame is executed nobody but us knows how much of its stack is in use.
  frame_->stacktop = -1;
  a_.operations->entered(a_);
  if (throwing && !handle_exception(true, a_.instruction)) return finish(nullptr);
  return step_until_end();
}

Step Loop::ask_boundary() {
  frame_->prev_instr = instructions_ + a_.next;
  return a_.boundary->at_instruction(a_);
}

PyObject* Loop::step_until_end() {
  for (;;) {
    a_.instruction = a_.next;
    if (cframe_.use_tracing != 0) {
      a_.operations->unusual(a_, "tracing");
      return hand_over(a_.next);
    }
    Outcome outcome = Outcome::unfinished;
    if (a_.boundary != nullptr) {
      switch (ask_boundary()) {
        case Step::execute:
          break;
        case Step::moved:
          continue;
        case Step::returned:
          unwind_stack(a_, 0);
          return finish(a_.result);
        case Step::raised:
          outcome = Outcome::raised;
          break;
        case Step::hand_over:
          return hand_over(a_.next);
      }
    }
    int lookup = a_.next;  // where to look for a handler if this raises
    while (outcome == Outcome::unfinished) {
      const Instruction instruction = decode(instructions_, a_.next);
      lookup = instruction.index;
      frame_->prev_instr = instructions_ + instruction.index;
      a_.next = instruction.end;
      outcome = execute(instruction);
    }
    switch (outcome) {
      case Outcome::done:
      case Outcome::unfinished:
        continue;
      case Outcome::interruptible:
        if (!is_interrupted(eval_breaker_) || assay_handle_pending(thread_) == 0) continue;
        // As in CPython, the handler is that of where we would have gone on.
        lookup = a_.next - 1;
        break;
      case Outcome::raised:
      case Outcome::reraised:
        break;
      case Outcome::returned:
        return finish(a_.result);
      case Outcome::yielded:
        _PyFrame_GetGenerator(frame_)->gi_frame_state = FRAME_SUSPENDED;
        return finish(a_.result);
      case Outcome::not_executed:
        a_.operations->unusual(a_, "an instruction that is left to CPython");
        return hand_over(a_.instruction);
    }
    if (cframe_.use_tracing != 0 && thread_->c_tracefunc != nullptr) return hand_over_raising();
    if (!handle_exception(outcome != Outcome::reraised, lookup)) {
      if (cframe_.use_tracing != 0) report_unwound(a_);
      return finish(nullptr);
    }
  }
}

// Goes to the handler of the exception that is set; false if there is none in this frame.
bool Loop::handle_exception(bool add_to_traceback, int lookup) {
  if (PyErr_Occurred() == nullptr) {
    PyErr_SetString(PyExc_SystemError, "error return without exception set");
  }
  keyword_names_ = nullptr;
  if (add_to_traceback) add_traceback(a_);
  Handler handler;
  do {
    if (!find_handler(a_.code, lookup, handler)) {
      unwind_stack(a_, 0);
      return false;
    }
  } while (!start_handler(a_, handler));
  return true;
}

bool Loop::load_fast(int index) {
  PyObject* value = a_.locals[index];
  if (value == nullptr) {
    raise_unbound(a_.code, index);
    return false;
  }
  push(a_, Py_NewRef(value), a_.origins[index]);
  return true;
}

bool Loop::delete_fast(int index) {
  if (a_.locals[index] == nullptr) {
    raise_unbound(a_.code, index);
    return false;
  }
  set_local(a_, index, nullptr);
  return true;
}

Outcome Loop::jump(int distance) {
  a_.next += distance;
  return distance < 0 ? Outcome::interruptible : Outcome::done;
}

// JUMP_IF_FALSE_OR_POP, JUMP_IF_TRUE_OR_POP
Outcome Loop::jump_if(bool expected, int distance) {
  const int is_true = a_.operations->is_true(a_, peek(a_, 1));
  if (is_true < 0) return Outcome::raised;
  if ((is_true != 0) == expected) return jump(distance);
  drop(a_, 1);
  return Outcome::done;
}

Outcome Loop::pop_jump_if(bool expected, int distance) {
  const int is_true = a_.operations->is_true(a_, peek(a_, 1));
  if (is_true < 0) return Outcome::raised;
  drop(a_, 1);
  return (is_true != 0) == expected ? jump(distance) : Outcome::done;
}

Outcome Loop::pop_jump_if_none(bool expected, int distance) {
  const bool is_none = a_.operations->is_none(a_, peek(a_, 1));
  drop(a_, 1);
  return is_none == expected ? jump(distance) : Outcome::done;
}

// `raise` without arguments goes on with the traceback of the exception that is being handled.
Outcome Loop::reraise_handled() {
  PyObject* handled = PyErr_GetHandledException();
  Py_XDECREF(handled);
  raise(a_, 0);
  return handled != nullptr ? Outcome::reraised : Outcome::raised;
}

Outcome Loop::execute(const Instruction& instruction) {
  Activation& a = a_;
  Operations& operations = *a.operations;
  const int arg = instruction.arg;
  const auto name = [&] { return name_at(a.code, arg); };
  PyObject** const items = a.top - arg;  // for instructions that take `arg` values
  Source* const* const origins = a.origins + (items - a.locals);
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
      return done_if(load_fast(arg));
    case STORE_FAST: {
      const Operand value = peek(a, 1);
      take(a);
      set_local(a, arg, value.object, value.origin);
      return Outcome::done;
    }
    case DELETE_FAST:
      return done_if(delete_fast(arg));

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
      return done_if(replace(a, arg, operations.build_tuple(a, items, origins, count)));
    case BUILD_LIST:
      return done_if(replace(a, arg, operations.build_list(a, items, origins, count)));
    case BUILD_SET:
      return done_if(replace(a, arg, operations.build_set(a, items, origins, count)));
    case BUILD_MAP:
      return done_if(
          replace(a, 2 * arg, operations.build_map(a, items - arg, origins - arg, count)));
    case BUILD_CONST_KEY_MAP:
      return done_if(replace(
          a, arg + 1, operations.build_const_key_map(a, object_at(a, 1), items - 1, origins - 1)));
    case BUILD_STRING:
      return done_if(replace(a, arg, operations.build_string(a, items, count)));
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
      return jump(arg);
    case JUMP_BACKWARD:
      return jump(-arg);
    case JUMP_BACKWARD_NO_INTERRUPT:
      jump(-arg);
      return Outcome::done;
    case JUMP_IF_FALSE_OR_POP:
      return jump_if(false, arg);
    case JUMP_IF_TRUE_OR_POP:
      return jump_if(true, arg);
    case POP_JUMP_FORWARD_IF_FALSE:
      return pop_jump_if(false, arg);
    case POP_JUMP_FORWARD_IF_TRUE:
      return pop_jump_if(true, arg);
    case POP_JUMP_BACKWARD_IF_FALSE:
      return pop_jump_if(false, -arg);
    case POP_JUMP_BACKWARD_IF_TRUE:
      return pop_jump_if(true, -arg);
    case POP_JUMP_FORWARD_IF_NONE:
      return pop_jump_if_none(true, arg);
    case POP_JUMP_FORWARD_IF_NOT_NONE:
      return pop_jump_if_none(false, arg);
    case POP_JUMP_BACKWARD_IF_NONE:
      return pop_jump_if_none(true, -arg);
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
      return pop_jump_if_none(false, -arg);
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
      keyword_names_ = constant_at(a.code, arg);
      return Outcome::unfinished;
    case PRECALL:
      return Outcome::unfinished;
    case CALL:
      return interruptible_if(call(a, arg, std::exchange(keyword_names_, nullptr)));
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
      if (arg == 0) return reraise_handled();
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

    // RETURN_GENERATOR makes an object around the frame; IMPORT_STAR, PRINT_EXPR and except* are
    // not worth having twice; what is async never comes here.
    default:
      return Outcome::not_executed;
  }
}

}  // namespace

bool can_run(PyThreadState* thread, const _PyInterpreterFrame* frame) {
  return (frame->f_code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) == 0 &&
         thread->cframe->use_tracing == 0;
}

PyObject* run(PyThreadState* thread, _PyInterpreterFrame* frame, bool throwing,
              Operations& operations, Boundary* boundary) {
  const auto slots =
      static_cast<std::size_t>(frame->f_code->co_nlocalsplus + frame->f_code->co_stacksize);
  constexpr std::size_t kSlotsOnStack = 256;
  if (slots > kSlotsOnStack) {
    const auto origins = std::make_unique<Source*[]>(slots);
    return Loop(thread, frame, operations, boundary, origins.get()).run(throwing);
  }
  auto** origins = static_cast<Source**>(alloca(slots * sizeof(Source*)));
  std::memset(origins, 0, slots * sizeof(Source*));
  return Loop(thread, frame, operations, boundary, origins).run(throwing);
}

Activation* current_activation() { return innermost; }

}  // namespace assay::capture
