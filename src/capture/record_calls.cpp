// Calls: Python functions are followed, tensor functions become nodes, builtins have models, and
// everything else ends the segment.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/callables.h"
#include "capture/code_facts.h"
#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/function.h"
#include "capture/logging_functions.h"
#include "capture/models.h"
#include "capture/models/table.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

PyObject* vectorcall(const Call& call) {
  return PyObject_Vectorcall(call.callable, call.args, call.positional(), call.names);
}

// The class method's descriptor that `type.name` was made from.
PyObject* class_method_of(PyObject* type, PyObject* name) {
  PyObject* found = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(type), name);
  return found != nullptr && Py_TYPE(found) == &PyClassMethodDescr_Type ? found : nullptr;
}

// The descriptor of a builtin type that a bound method was made from: not what the object's own
// class finds under that name, since it may have been reached through super().
PyObject* bound_from(PyObject* callable, PyObject* self, PyObject* name) {
  PyObject* mro = Py_TYPE(self)->tp_mro;
  const Ref owner = Ref::steal(PyObject_GetAttrString(callable, "__objclass__"));
  PyErr_Clear();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); ++i) {
    PyObject* type = PyTuple_GET_ITEM(mro, i);
    PyObject* found = PyDict_GetItem(reinterpret_cast<PyTypeObject*>(type)->tp_dict, name);
    if (found == nullptr) continue;
    if (Py_TYPE(found) == &PyWrapperDescr_Type && owner.get() == type) return found;
    if (Py_TYPE(found) == &PyMethodDescr_Type && PyCFunction_Check(callable) &&
        reinterpret_cast<PyMethodDescrObject*>(found)->d_method ==
            reinterpret_cast<PyCFunctionObject*>(callable)->m_ml) {
      return found;
    }
  }
  return nullptr;
}

// The call of a bound method as a call of its function.
struct WithReceiver {
  WithReceiver(PyObject* function, PyObject* self, const Call& call) {
    args_.reserve(call.count + 2);
    args_ = {nullptr, self};
    args_.insert(args_.end(), call.args, call.args + call.count);
    made = {function, args_.data() + 1, call.count + 1, call.names};
  }
  Call made;

 private:
  std::vector<PyObject*> args_;
};

}  // namespace

PyObject* Recorder::call(Activation& a, const CallOperands& operands) {
  if (!is_recording()) return Operations::call(a, operands);
  for (std::size_t i = 0; i < operands.count; ++i) {
    read({operands.args[i], operands.origins[i]});
  }
  return call_object(a, {operands.callable.object, operands.args, operands.count, operands.names});
}

PyObject* Recorder::call_ex(Activation& a, Operand callable, Operand args, Operand kwargs) {
  if (!is_recording()) return Operations::call_ex(a, callable, args, kwargs);
  const auto plainly = [&](const char* why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return Operations::call_ex(a, callable, args, kwargs);
  };
  std::vector<PyObject*> all = {nullptr};
  Ref items;
  if ((PyTuple_CheckExact(args.object) || PyList_CheckExact(args.object) ||
       Py_TYPE(args.object) == size_type())) {
    if (!know_contents(args.object, true)) return plainly("* of a container that is not known");
    items = Ref::borrow(args.object);
  } else {
    items = Ref::steal(PyList_New(0));
    tracked_.add(items.get(), Tracked::Kind::local).is_known = true;
    if (!list_extend(a, items.get(), args)) return nullptr;
    if (!is_recording()) {
      const Operand list{items.get(), nullptr};
      return Operations::call_ex(a, callable, list, kwargs);
    }
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    all.push_back(PySequence_Fast_GET_ITEM(items.get(), i));
  }
  Ref names;
  if (kwargs.object != nullptr) {
    if (!PyDict_Check(kwargs.object) || !know_contents(kwargs.object, true)) {
      return plainly("** of an object that is not a known dict");
    }
    const Ref keys = Ref::steal(PyDict_Keys(kwargs.object));
    names = Ref::steal(PyList_AsTuple(keys.get()));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
      PyObject* key = PyTuple_GET_ITEM(names.get(), i);
      if (!PyUnicode_CheckExact(key)) return plainly("keywords must be strings");
      all.push_back(PyDict_GetItem(kwargs.object, key));
    }
    if (PyTuple_GET_SIZE(names.get()) == 0) names = Ref();
  }
  return call_object(a, {callable.object, all.data() + 1, all.size() - 1, names.get()});
}

PyObject* Recorder::call_plainly(Activation& a, const Call& call, std::string reason) {
  if (!stop(a, std::move(reason))) return nullptr;
  return vectorcall(call);
}

PyObject* Recorder::call_watched(Activation& a, const Call& call) {
  const std::size_t before = unexplained();
  return watched(a, before, vectorcall(call));
}

PyObject* Recorder::call_unseen(const Call& call) {
  const std::size_t before = watch_.count();
  const SuspendScope suspended(*this);
  PyObject* result = vectorcall(call);
  expected_operators_ += watch_.count() - before;
  return result;
}

PyObject* Recorder::call_question(Activation& a, const Call& call) {
  Ref key = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(call.count) + 1));
  PyTuple_SET_ITEM(key.get(), 0, Py_NewRef(call.callable));
  bool is_known = call.names == nullptr;
  for (std::size_t i = 0; i < call.count; ++i) {
    is_known = is_known && (is_scalar(call.args[i]) || is_known_key(call.args[i]));
    PyTuple_SET_ITEM(key.get(), static_cast<Py_ssize_t>(i) + 1, Py_NewRef(call.args[i]));
  }
  if (!is_known) return call_plainly(a, call, "a call of " + name_of(call.callable));
  PyObject* result = call_unseen(call);
  if (result == nullptr) return nullptr;
  if (!is_scalar(result) && !is_identity_object(result)) return made(a, result, "a question");
  arrived(result, sources_.get(Access::answer, nullptr, key.get()));
  touch(result);
  return result;
}

PyObject* Recorder::call_pure(Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (!know_all(call.args[i])) {
      return call_plainly(
          a, call, "a call of " + name_of(call.callable) + " with an object that is not modelled");
    }
  }
  return made(a, call_watched(a, call), "a call");
}

PyObject* Recorder::call_object(Activation& a, const Call& call, Source* const* origins) {
  PyObject* callable = call.callable;
  if (!is_recording()) return vectorcall(call);
  if (!touch(callable)) {
    if (!is_identity_object(callable)) {
      return call_plainly(a, call, "a call of " + name_of(callable) + ", which is not known");
    }
    is_constant(callable);
  }
  switch (logging_of(callable)) {
    case Logging::none:
      break;
    case Logging::reordered:
      return call_logging(a, call);
    case Logging::ignored:
      guard_identity(callable);
      return Py_NewRef(Py_None);
  }
  if (const Model model = find_model(callable)) {
    guard_identity(callable);
    PyObject* answer = nullptr;
    if (follows_sizes_ && answers_size(call, answer))
      return made(a, answer, "the size of a tensor");
    if (follows_sizes_) use_sizes(call, size_use_of(callable));
    return model(*this, a, call);
  }
  if (PyMethod_Check(callable)) {
    PyObject* function = PyMethod_GET_FUNCTION(callable);
    PyObject* self = PyMethod_GET_SELF(callable);
    const Tracked* tracked = tracked_.find(callable);
    if (tracked->source != nullptr) {
      arrived(function, sources_.get(Access::callee, tracked->source, nullptr));
      arrived(self, sources_.get(Access::receiver, tracked->source, nullptr));
    }
    const WithReceiver with(function, self, call);
    return call_object(a, with.made);
  }
  if (const GraphFunction* known = find_graph_function(callable)) {
    guard_identity(callable);
    return call_tensor_function(a, known->target, known->is_method, call);
  }
  if (PyFunction_Check(callable)) return call_function(a, call, origins);
  if (PyType_Check(callable)) return call_type(a, call);
  if (PyCFunction_Check(callable) || Py_TYPE(callable) == &_PyMethodWrapper_Type) {
    return call_builtin(a, call);
  }
  return call_instance(a, call);
}

PyObject* Recorder::call_function(Activation& a, const Call& call, Source* const*) {
  auto* function = reinterpret_cast<PyFunctionObject*>(call.callable);
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  if (PyObject* optimizers = wrapped_by_stock(call.callable)) {
    guard_identity(call.callable);
    is_constant(optimizers);
    return call_object(a, {optimizers, call.args, call.count, call.names});
  }
  if (const auto reason = disabled_reason(call.callable)) return call_plainly(a, call, *reason);
  static PyObject* const in_graph = PyUnicode_InternFromString("_assay_in_graph");
  if (is_marked(call.callable, in_graph) && !prefers_breaks()) {
    guard_identity(call.callable);
    return call_as_one(a, call, nullptr, Followed::nothing);
  }
  // A compiled function in a compiled function is followed like any other.
  static PyObject* const compiles = PyUnicode_InternFromString("_assay_compiles");
  if (is_marked(call.callable, compiles) && call.positional() == 1 &&
      PyFunction_Check(call.args[0])) {
    guard_identity(call.callable);
    return Py_NewRef(call.args[0]);
  }
  static PyObject* const constant = PyUnicode_InternFromString("_assay_constant_result");
  if (is_marked(call.callable, constant)) return call_cached(a, call, true);
  if (is_of_stocks_compiler(function)) {
    return call_plainly(a, call, name_of(call.callable) + " is compiled by stock torch.compile");
  }
  if ((code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0) {
    return call_plainly(a, call, name_of(call.callable) + " is asynchronous");
  }
  Tracked* tracked = tracked_.find(call.callable);
  if (tracked->source != nullptr && !tracked->source->checks.function) {
    const auto or_none = [](PyObject* value) { return value == nullptr ? Py_None : value; };
    tracked->source->checks.function =
        Ref::steal(PyTuple_Pack(4, function->func_code, or_none(function->func_defaults),
                                or_none(function->func_kwdefaults), function->func_globals));
    // The defaults are these very objects as long as the tuple is.
    if (function->func_defaults != nullptr) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(function->func_defaults); ++i) {
        found_fixed(PyTuple_GET_ITEM(function->func_defaults, i));
      }
    }
    if (function->func_kwdefaults != nullptr) {
      is_constant(function->func_kwdefaults);
      Py_ssize_t position = 0;
      PyObject* key = nullptr;
      PyObject* value = nullptr;
      while (PyDict_Next(function->func_kwdefaults, &position, &key, &value) != 0) {
        read_item(function->func_kwdefaults, key);
      }
    }
  }
  calling_ = code;
  PyObject* result = vectorcall(call);
  calling_ = nullptr;
  if (result == nullptr || !is_recording()) return result;
  if ((code->co_flags & CO_GENERATOR) != 0 && tracked_.find(result) == nullptr) {
    Tracked& generator = tracked_.add(result, Tracked::Kind::local);
    generator.is_known = true;
    // Not kept alive: to let go of a generator inside of a `try` runs its `finally`.
    generator.weak = Ref::steal(PyWeakref_NewRef(result, nullptr));
    generator.object = Ref();
  }
  return result;
}

PyObject* Recorder::call_builtin(Activation& a, const Call& call) {
  PyObject* callable = call.callable;
  const Ref self = Ref::steal(PyObject_GetAttrString(callable, "__self__"));
  const Ref name = Ref::steal(PyObject_GetAttrString(callable, "__name__"));
  PyErr_Clear();
  if (self && name && self.get() != Py_None && !PyModule_Check(self.get())) {
    // A bound method of a builtin type: call what it was bound from.
    PyObject* found = PyType_Check(self.get()) ? class_method_of(self.get(), name.get()) : nullptr;
    if (found == nullptr) found = bound_from(callable, self.get(), name.get());
    if (found != nullptr) {
      is_constant(found);
      // Bound for good: keyword.iskeyword is a method of a frozenset.
      if (PyFrozenSet_CheckExact(self.get()) && tracked_.find(self.get()) == nullptr) {
        guard_identity(callable);
        found_fixed(self.get());
      }
      const WithReceiver with(found, self.get(), call);
      if (find_model(found) != nullptr || find_graph_function(found) != nullptr) {
        return call_object(a, with.made);
      }
    }
  }
  return call_plainly(a, call, "a call of " + name_of(callable) + ", which is not modelled");
}

PyObject* Recorder::call_type(Activation& a, const Call& call) {
  static PyObject* const call_name = PyUnicode_InternFromString("__call__");
  PyObject* meta_call = lookup_on_type(Py_TYPE(call.callable), call_name);
  if (meta_call != nullptr && PyFunction_Check(meta_call)) {
    is_constant(meta_call);
    const WithReceiver with(meta_call, call.callable, call);
    return call_object(a, with.made);
  }
  return instantiate(a, call);
}

PyObject* Recorder::call_instance(Activation& a, const Call& call) {
  static PyObject* const call_name = PyUnicode_InternFromString("__call__");
  PyObject* callable = call.callable;
  if (PyObject* function = function_of(callable)) {
    // A compiled function in a compiled function: followed like any other.
    Tracked* tracked = tracked_.find(callable);
    if (tracked->source != nullptr) tracked->source->checks.identical = Ref::borrow(callable);
    is_constant(function);
    return call_object(a, {function, call.args, call.count, call.names});
  }
  if (Py_TYPE(callable) == partial_type()) return call_partial(a, call);
  if (is_operator_getter(callable)) return call_getter(*this, a, call);
  if (PyObject* function = scripted_function(callable)) {
    guard_identity(callable);
    is_constant(function);
    return call_object(a, {function, call.args, call.count, call.names});
  }
  if (is_cached_by_library(callable)) return call_cached(a, call);
  if (is_cached(callable) && allows_no_break()) return call_program_cache(a, call);
  if (PyWeakref_CheckRefExact(callable)) return call_weak_reference(a, call);
  PyObject* found = lookup_on_type(Py_TYPE(callable), call_name);
  if (found != nullptr && PyFunction_Check(found)) {
    is_constant(found);
    const WithReceiver with(found, callable, call);
    return call_object(a, with.made);
  }
  return call_plainly(a, call, "a call of " + name_of(callable) + ", which is not modelled");
}

PyObject* Recorder::call_weak_reference(Activation& a, const Call& call) {
  const Tracked* tracked = tracked_.find(call.callable);
  if (call.count != 0 || tracked == nullptr || tracked->source == nullptr) {
    return call_plainly(a, call, "a new weak reference");
  }
  PyObject* referent = PyWeakref_GET_OBJECT(call.callable);
  arrived(referent, sources_.get(Access::referent, tracked->source, nullptr));
  return Py_NewRef(referent);
}

bool Recorder::know_partial(Activation& a, PyObject* partial) {
  if (!touch(partial)) return false;
  for (const char* name : {"func", "args", "keywords"}) {
    const Ref text = Ref::steal(PyUnicode_InternFromString(name));
    const Ref part = Ref::steal(get_attribute(a, partial, text.get()));
    if (!part || !is_recording()) return false;
    if (PyTuple_Check(part.get()) || PyDict_Check(part.get())) {
      if (!know_contents(part.get())) return false;
    }
  }
  return true;
}

PyObject* Recorder::call_partial(Activation& a, const Call& call) {
  if (!know_partial(a, call.callable)) {
    if (PyErr_Occurred() != nullptr) return nullptr;
    return call_plainly(a, call, "a call of a functools.partial that is not known");
  }
  const Ref function = Ref::steal(PyObject_GetAttrString(call.callable, "func"));
  const Ref args = Ref::steal(PyObject_GetAttrString(call.callable, "args"));
  const Ref keywords = Ref::steal(PyObject_GetAttrString(call.callable, "keywords"));
  if (!function || !args || !keywords) return nullptr;
  std::vector<PyObject*> all = {nullptr};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args.get()); ++i) {
    all.push_back(PyTuple_GET_ITEM(args.get(), i));
  }
  const std::size_t positional = call.positional();
  all.insert(all.end(), call.args, call.args + positional);
  const Ref merged = Ref::steal(PyDict_Copy(keywords.get()));
  for (std::size_t i = positional; i < call.count; ++i) {
    PyDict_SetItem(merged.get(),
                   PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional)),
                   call.args[i]);
  }
  Py_ssize_t position = 0;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  while (PyDict_Next(merged.get(), &position, &key, &value) != 0) all.push_back(value);
  const Ref keys = Ref::steal(PyDict_Keys(merged.get()));
  const Ref names = Ref::steal(PyList_AsTuple(keys.get()));
  return call_object(a, {function.get(), all.data() + 1, all.size() - 1,
                         PyTuple_GET_SIZE(names.get()) == 0 ? nullptr : names.get()});
}

PyObject* Recorder::make_function(Activation& a, PyObject* code, PyObject* defaults,
                                  PyObject* kwdefaults, PyObject* annotations, PyObject* closure) {
  PyObject* made_function =
      Operations::make_function(a, code, defaults, kwdefaults, annotations, closure);
  if (is_recording() && made_function != nullptr) {
    tracked_.add(made_function, Tracked::Kind::local).is_known = true;
  }
  return made_function;
}

}  // namespace assay::capture
