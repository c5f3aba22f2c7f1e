// Operators, comparisons, `is` and truth: of tensors they become nodes, of other objects they are
// followed.
#include <array>
#include <string>
#include <string_view>

#include "capture/arrays.h"
#include "capture/code_facts.h"
#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models.h"
#include "capture/python_calls.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

// BINARY_OP's argument -> the function of Python's operator module.
constexpr std::array<const char*, 26> kOperatorNames = {
    "operator.add",      "operator.and_",    "operator.floordiv", "operator.lshift",
    "operator.matmul",   "operator.mul",     "operator.mod",      "operator.or_",
    "operator.pow",      "operator.rshift",  "operator.sub",      "operator.truediv",
    "operator.xor",      "operator.iadd",    "operator.iand",     "operator.ifloordiv",
    "operator.ilshift",  "operator.imatmul", "operator.imul",     "operator.imod",
    "operator.ior",      "operator.ipow",    "operator.irshift",  "operator.isub",
    "operator.itruediv", "operator.ixor"};

}  // namespace

PyObject* Recorder::unary(Activation& a, Unary op, Operand value) {
  if (!is_recording()) return Operations::unary(a, op, value);
  read(value);
  if (op == Unary::logical_not) {
    const int truth = is_true(a, value);
    if (truth < 0) return nullptr;
    return Py_NewRef(truth == 1 ? Py_False : Py_True);
  }
  if (op == Unary::negative && size_numbers_.find(value.object) != nullptr) {
    const Ref zero = Ref::steal(PyLong_FromLong(0));
    PyObject* result = nullptr;
    if (calculates_size(NB_SUBTRACT, zero.get(), value.object, result)) return result;
  }
  if (is_tensor(value.object) || is_computed_array(value.object)) {
    const char* name = op == Unary::negative   ? "operator.neg"
                       : op == Unary::positive ? "operator.pos"
                                               : "operator.invert";
    if (!is_tensor(value.object)) return array_operator(a, name, value.object, nullptr);
    return tensor_operator(a, name, value.object, nullptr);
  }
  use_sizes(value.object);
  const char* method = op == Unary::negative   ? "__neg__"
                       : op == Unary::positive ? "__pos__"
                                               : "__invert__";
  if (is_python_method(value.object, method)) return call_method(a, value.object, method, {});
  if (!is_scalar(value.object)) {
    if (!stop(a, "an operator on an object that is not modelled")) return nullptr;
    return Operations::unary(a, op, value);
  }
  return Operations::unary(a, op, value);
}

PyObject* Recorder::binary(Activation& a, int op, Operand left, Operand right) {
  if (!is_recording()) return Operations::binary(a, op, left, right);
  read(left);
  read(right);
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return Operations::binary(a, op, left, right);
  };
  if (!touch(left.object) || !touch(right.object))
    return plainly("an operator on an unknown object");
  // A list is extended by what a tensor holds, and a number cannot be changed: `n += x` is `n = n +
  // x`.
  const bool extends = op == NB_INPLACE_ADD && PyList_Check(left.object);
  const bool is_plain =
      op >= NB_INPLACE_ADD && (is_scalar(left.object) || is_array_scalar(left.object));
  const char* name = kOperatorNames[static_cast<std::size_t>(is_plain ? op - NB_INPLACE_ADD : op)];
  if (!extends && (is_tensor(left.object) || is_tensor(right.object))) {
    return tensor_operator(a, name, left.object, right.object);
  }
  if (is_computed_array(left.object) || is_computed_array(right.object)) {
    const bool may_change =
        op >= NB_INPLACE_ADD && !is_scalar(left.object) && !is_array_scalar(left.object);
    if (may_change && !is_array(left.object)) return plainly("an array is changed in place");
    return array_operator(a, name, left.object, right.object);
  }
  PyObject* calculated = nullptr;
  if (calculates_size(op, left.object, right.object, calculated)) return calculated;
  const auto is_items = [](PyObject* object) {
    return PyTuple_Check(object) || PyList_Check(object);
  };
  const bool joins = (op == NB_ADD || op == NB_INPLACE_ADD) && is_items(left.object);
  if (!joins) {  // what is joined is not looked at
    if (!is_items(left.object)) use_sizes(left.object);
    if (!is_items(right.object)) use_sizes(right.object);
    if (op != NB_MULTIPLY && op != NB_INPLACE_MULTIPLY) {
      use_sizes(left.object);
      use_sizes(right.object);
    }
  }
  const bool is_in_place = op >= NB_INPLACE_ADD;
  if (is_in_place && !is_scalar(left.object)) {
    // list += iterable and its like change the left side, unless the right one adds itself.
    const std::string in_place = "__" + std::string(name).substr(sizeof("operator.") - 1) + "__";
    const bool is_builtin = !is_python_method(left.object, in_place.c_str());
    const PyNumberMethods* numbers = Py_TYPE(right.object)->tp_as_number;
    const bool adds_itself =
        !is_tensor(right.object) && numbers != nullptr && numbers->nb_add != nullptr;
    const bool is_deque = Py_TYPE(left.object) == deque_type();
    const bool is_extended = op == NB_INPLACE_ADD && is_builtin &&
                             (is_deque || PyList_Check(left.object)) &&
                             (!adds_itself || !is_scalar(right.object));
    if (is_extended && adds_itself) return plainly("an object that may add itself to a list");
    if (is_extended && is_deque) {
      static PyObject* const extend = PyDict_GetItemString(deque_type()->tp_dict, "extend");
      PyObject* args[] = {nullptr, left.object, right.object};
      const Ref done = Ref::steal(call_object(a, {extend, args + 1, 2, nullptr}));
      return done ? Py_NewRef(left.object) : nullptr;
    }
    if (is_extended) {
      if (!list_extend(a, left.object, right)) return nullptr;
      return Py_NewRef(left.object);
    }
    if (is_deque && op != NB_INPLACE_ADD) return plainly("a deque is changed by an operator");
    if (is_builtin && (PyDict_Check(left.object) || PySet_Check(left.object) ||
                       (PyList_Check(left.object) && op != NB_INPLACE_ADD))) {
      // The order of an older set would not be that of eager.
      const bool is_old_set =
          PySet_Check(left.object) && tracked_.find(left.object)->source != nullptr;
      const char* method = op == NB_INPLACE_OR         ? "update"
                           : op == NB_INPLACE_AND      ? "intersection_update"
                           : op == NB_INPLACE_SUBTRACT ? "difference_update"
                           : op == NB_INPLACE_XOR      ? "symmetric_difference_update"
                                                       : nullptr;
      if (is_old_set && method != nullptr && PyAnySet_Check(right.object)) {
        PyObject* args[] = {nullptr, left.object, right.object};
        PyObject* updates = PyDict_GetItemString(PySet_Type.tp_dict, method);
        const Ref done = Ref::steal(call_object(a, {updates, args + 1, 2, nullptr}));
        return done ? Py_NewRef(left.object) : nullptr;
      }
      if (is_old_set || !know_contents(right.object) || !before_change(left.object)) {
        return plainly("a container is changed whose contents are not known");
      }
      PyObject* result = Operations::binary(a, op, left, right);
      if (result != nullptr) changed_contents(left.object);
      return result;
    }
  }
  bool is_python = false;
  for (PyObject* object : {left.object, right.object}) {
    if ((Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) continue;
    const std::string base(std::string_view(name).substr(std::string_view("operator.").size()));
    std::string plain = is_in_place ? base.substr(1) : base;
    if (plain.ends_with('_')) plain.pop_back();
    for (const std::string& method :
         {"__" + plain + "__", "__r" + plain + "__", "__i" + plain + "__"}) {
      is_python = is_python_method(object, method.c_str()) || is_python;  // all are guarded
    }
  }
  // Beside a method in Python, C code may get to read the items of a container.
  const auto is_known = [&](PyObject* object) {
    if (PyObject* dict = dict_of_view(object)) return know_all(dict);
    if (Py_TYPE(object) == deque_type()) return know_contents(object);
    const bool passes_on = joins || op == NB_MULTIPLY || op == NB_INPLACE_MULTIPLY;
    if (passes_on && has_known_items(object)) return know_contents(object);
    return is_python ? !is_container(object) || know_contents(object) : know_all(object);
  };
  if (!is_known(left.object) || !is_known(right.object)) {
    return plainly("an operator on objects whose contents are not known");
  }
  const std::size_t before = unexplained();
  PyObject* result = watched(a, before, Operations::binary(a, op, left, right));
  return made(a, result, "an operator");
}

PyObject* Recorder::compare(Activation& a, int op, Operand left, Operand right) {
  if (!is_recording()) return Operations::compare(a, op, left, right);
  read(left);
  read(right);
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return Operations::compare(a, op, left, right);
  };
  if (!touch(left.object) || !touch(right.object))
    return plainly("a comparison of unknown objects");
  const bool is_with_none = left.object == Py_None || right.object == Py_None;
  if (is_with_none && (op == Py_EQ || op == Py_NE) &&
      (is_plain_tensor(left.object) || is_plain_tensor(right.object))) {
    return Operations::compare(a, op, left, right);  // by identity
  }
  if (is_tensor(left.object) || is_tensor(right.object)) {
    return tensor_operator(a, comparison_function(op), left.object, right.object);
  }
  if (is_computed_array(left.object) || is_computed_array(right.object)) {
    return array_operator(a, comparison_function(op), left.object, right.object);
  }
  PyObject* compared = nullptr;
  if (compares_size(op, left.object, right.object, compared)) return compared;
  use_sizes(left.object);
  use_sizes(right.object);
  static constexpr std::array<const char*, 6> kMethods = {"__lt__", "__le__", "__eq__",
                                                          "__ne__", "__gt__", "__ge__"};
  const auto compares_itself = [&](PyObject* object) {
    const bool has_method = is_python_method(object, kMethods[static_cast<std::size_t>(op)]);
    // object.__ne__ asks __eq__.
    return has_method || (op == Py_NE && is_python_method(object, "__eq__"));
  };
  const bool is_python = compares_itself(left.object) || compares_itself(right.object);
  if (!is_python) {
    const auto is_known = [&](PyObject* object) {
      PyObject* dict = dict_of_view(object);
      return know_all(dict != nullptr ? dict : object);
    };
    const bool known = is_known(left.object) && is_known(right.object);
    // Neither knows the other one: a type of C code may (numpy.dtype and types).
    const auto is_by_identity = [](PyObject* object) {
      return Py_TYPE(object)->tp_richcompare == PyBaseObject_Type.tp_richcompare;
    };
    const auto knows_own_kind = [&](PyObject* object) {
      return is_by_identity(object) || is_scalar(object) || is_container(object) ||
             PyFunction_Check(object) || PyMethod_Check(object) || is_torch_enum(object) ||
             (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
    };
    const bool by_identity = (op == Py_EQ || op == Py_NE) &&
                             ((is_by_identity(left.object) && knows_own_kind(right.object)) ||
                              (is_by_identity(right.object) && knows_own_kind(left.object)));
    if (!known && by_identity) {
      const Ref same = Ref::steal(is(a, left, right, op == Py_NE));
      if (!same || !is_recording()) return Operations::compare(a, op, left, right);
      return Py_NewRef(same.get());
    }
    if (!known) return plainly("a comparison of objects whose contents are not known");
  }
  const std::size_t before = unexplained();
  return made(a, watched(a, before, Operations::compare(a, op, left, right)), "a comparison");
}

PyObject* Recorder::is(Activation& a, Operand left, Operand right, bool invert) {
  if (!is_recording()) return Operations::is(a, left, right, invert);
  read(left);
  read(right);
  if (!touch(left.object) || !touch(right.object)) {
    if (!stop(a, "`is` on an unknown object")) return nullptr;
    return Operations::is(a, left, right, invert);
  }
  if (size_numbers_.find(left.object) != nullptr || size_numbers_.find(right.object) != nullptr) {
    return is_same_number(left.object, right.object, invert);
  }
  if (left.object != right.object && !is_scalar(left.object) && !is_scalar(right.object)) {
    const Tracked* one = tracked_.find(left.object);
    const Tracked* other = tracked_.find(right.object);
    if (one->source != nullptr && other->source != nullptr &&
        Py_TYPE(left.object) == Py_TYPE(right.object)) {
      distinct_.emplace_back(one->source, other->source);
    }
  }
  return Operations::is(a, left, right, invert);
}

bool Recorder::is_none(Activation& a, Operand value) {
  if (is_recording()) {
    read(value);
    touch(value.object);
  }
  return Operations::is_none(a, value);
}

namespace {

// `assert x.all()`, and how torch.distributions validates: whatever else happens raises.
bool only_raises(const Activation& a) {
  const CodeInstruction jump = instruction_at(a.code, a.instruction);
  if (jump.opcode == POP_JUMP_FORWARD_IF_TRUE &&
      instruction_at(a.code, jump.next).opcode == LOAD_ASSERTION_ERROR) {
    return true;
  }
  const char* file = PyUnicode_AsUTF8(a.code->co_filename);
  return file != nullptr &&
         std::string_view(file).find("/torch/distributions/") != std::string_view::npos;
}

}  // namespace

std::optional<int> Recorder::expected_truth(Activation& a, PyObject* tensor) {
  if (!only_raises(a) || !is_plain_tensor(tensor) || tensor_of(tensor).numel() != 1 ||
      has_open_size(tensor)) {
    return std::nullopt;
  }
  graph::Node* condition = node_of(tensor);
  if (condition == nullptr) return std::nullopt;
  const std::size_t before = watch_.count();
  const bool truth = tensor_of(tensor).is_nonzero();
  expected_operators_ += watch_.count() - before;
  graph::Node& node = graph_->call_function(kPythonExpect, {condition, truth});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  return truth ? 1 : 0;
}

int Recorder::is_true(Activation& a, Operand value) {
  if (!is_recording()) return Operations::is_true(a, value);
  read(value);
  PyObject* object = value.object;
  if (size_numbers_.find(object) != nullptr) {
    const Ref zero = Ref::steal(PyLong_FromLong(0));
    PyObject* truth = nullptr;
    if (!compares_size(Py_NE, object, zero.get(), truth)) use_sizes(object);
    Py_XDECREF(truth);
  }
  if (is_scalar(object)) return Operations::is_true(a, value);
  const auto plainly = [&](const char* why) {
    if (!stop(a, why)) return -1;
    return Operations::is_true(a, value);
  };
  if (!touch(object)) return plainly("a branch on an unknown object");
  if (is_tensor(object)) {
    if (const auto truth = expected_truth(a, object)) return *truth;
    return plainly("a branch depends on the value of a tensor");
  }
  if (is_computed_array(object)) return plainly("a branch depends on the value of an array");
  if (is_container(object) || Py_TYPE(object) == deque_type()) {
    Tracked* tracked = tracked_.find(object);
    if (tracked->source != nullptr && !tracked->is_known && !tracked->is_mutated &&
        !is_python_method(object, "__len__") && !is_python_method(object, "__bool__")) {
      tracked->source->checks.length = PyObject_Size(object);
      return Operations::is_true(a, value);
    }
    if (tracked->source != nullptr && !know_contents(object)) {
      return plainly("a branch on a container whose contents are not known");
    }
    return Operations::is_true(a, value);
  }
  is_python_method(object, "__bool__");  // the lookups are guarded
  is_python_method(object, "__len__");
  PyTypeObject* type = Py_TYPE(object);
  const bool always_true =
      (type->tp_as_number == nullptr || type->tp_as_number->nb_bool == nullptr) &&
      (type->tp_as_mapping == nullptr || type->tp_as_mapping->mp_length == nullptr) &&
      (type->tp_as_sequence == nullptr || type->tp_as_sequence->sq_length == nullptr);
  if (always_true) return 1;
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 &&
      tracked_.find(object)->kind == Tracked::Kind::source) {
    return plainly("a branch on an object that is not modelled");
  }
  const std::size_t before = unexplained();
  const int truth = Operations::is_true(a, value);
  if (is_recording() && unexplained() != before) {
    if (!stop(a, "an operator ran inside __bool__")) return -1;
  }
  return truth;
}

}  // namespace assay::capture
