// torch.autograd.Function.
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>

#include <algorithm>
#include <vector>

#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

Ref attribute_of(Recorder& recorder, Activation& a, PyObject* object, const char* name) {
  const Ref text = Ref::steal(PyUnicode_InternFromString(name));
  return Ref::steal(recorder.get_attribute(a, object, text.get()));
}

// The class torch.autograd.function.<name>.
PyObject* function_class(const char* name) {
  const Ref module = Ref::steal(import_module("torch.autograd.function"));
  return PyObject_GetAttrString(module.get(), name);
}

// Whether a forward without context takes just so many arguments: apply fills in defaults.
bool has_arguments_for(PyObject* forward, std::size_t count) {
  if (!PyFunction_Check(forward)) return false;
  const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(forward));
  const bool is_plain =
      (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) == 0 && code->co_kwonlyargcount == 0;
  return is_plain && static_cast<std::size_t>(code->co_argcount) == count;
}

// With gradients: the whole call is one in the graph, because backward is written in Python. What
// forward does is followed; what backward does is up to each run of it.
PyObject* apply_with_gradient(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const function_type = function_class("Function");
  static PyObject* const own_setup = PyObject_GetAttrString(function_type, "setup_context");
  const auto plainly = [&](const char* why) { return recorder.call_plainly(a, call, why); };
  if (call.names != nullptr || !PyType_Check(call.args[0])) {
    return plainly("a torch.autograd.Function with keywords");
  }
  PyObject* type = call.args[0];
  recorder.guard_identity(type);
  const Ref setup = attribute_of(recorder, a, type, "setup_context");
  const Ref forward = attribute_of(recorder, a, type, "forward");
  if (!setup || !forward) return nullptr;
  if (!recorder.is_recording()) return plainly("");
  const std::size_t given = call.count - 1;
  if (!PyFunction_Check(setup.get()) ||
      !(setup.get() == own_setup ? PyFunction_Check(forward.get())
                                 : has_arguments_for(forward.get(), given))) {
    return plainly("the gradient of such a torch.autograd.Function");
  }
  for (std::size_t i = 1; i < call.count; ++i) {
    if (is_tensor(call.args[i]) && !is_plain_tensor(call.args[i])) {
      return plainly("a tensor subclass");
    }
  }
  const Ref base = Ref::steal(PyObject_CallFunctionObjArgs(
      reinterpret_cast<PyObject*>(&PySuper_Type), function_type, type, nullptr));
  const Ref apply = Ref::steal(base ? PyObject_GetAttrString(base.get(), "apply") : nullptr);
  const Ref context = Ref::steal(PyObject_GetAttrString(type, "_backward_cls"));
  if (!apply || !context) return nullptr;
  return recorder.call_as_one(a, {apply.get(), call.args + 1, given, nullptr},
                              reinterpret_cast<PyTypeObject*>(context.get()));
}

// A custom autograd function while no gradients are recorded is its forward.
PyObject* apply_function(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const context_type = function_class("FunctionCtx");
  static PyObject* const function_type = function_class("Function");
  static PyObject* const own_setup = PyObject_GetAttrString(function_type, "setup_context");
  const auto plainly = [&](const char* why) { return recorder.call_plainly(a, call, why); };
  const auto wants_grad = [&](PyObject* argument) {
    return is_tensor(argument) && recorder.touch(argument) && tensor_of(argument).requires_grad();
  };
  if (at::functorch::maybeCurrentDynamicLayer().has_value()) {
    static PyObject* const apply = PyObject_GetAttrString(
        PyDict_GetItemString(reinterpret_cast<PyTypeObject*>(function_type)->tp_dict, "apply"),
        "__func__");
    return recorder.call_transformed({apply, call.args, call.count, call.names});
  }
  const bool has_grad_mode = recorder.grad_mode();
  if (has_grad_mode && std::any_of(call.args, call.args + call.count, wants_grad)) {
    return apply_with_gradient(recorder, a, call);
  }
  if (call.count == 0 || call.names != nullptr || !PyType_Check(call.args[0])) {
    return plainly("a torch.autograd.Function with keywords");
  }
  PyObject* type = call.args[0];
  const Ref setup = attribute_of(recorder, a, type, "setup_context");
  const Ref forward = attribute_of(recorder, a, type, "forward");
  if (!setup || !forward) return nullptr;
  const bool has_setup = setup.get() != own_setup;
  recorder.is_constant(context_type);
  const Ref context = Ref::steal(recorder.call_object(a, {context_type, nullptr, 0, nullptr}));
  const Ref needs = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(call.count - 1)));
  if (!context || !needs) return nullptr;
  std::vector<PyObject*> args = {nullptr, context.get()};
  const std::size_t first = has_setup ? 2 : 1;  // such a forward has no context
  for (std::size_t i = 1; i < call.count; ++i) {
    PyObject* argument = call.args[i];
    if (is_tensor(argument) && !is_plain_tensor(argument)) return plainly("a tensor subclass");
    PyTuple_SET_ITEM(needs.get(), static_cast<Py_ssize_t>(i - 1), truth(wants_grad(argument)));
    args.push_back(argument);
  }
  if (!recorder.is_recording()) return plainly("");
  recorder.track_local(needs.get());
  const Ref name = Ref::steal(PyUnicode_InternFromString("needs_input_grad"));
  if (!recorder.set_attribute(a, context.get(), name.get(), needs.get())) return nullptr;
  // forward runs without recording gradients, and what it raises leaves the mode as it was.
  if (has_grad_mode && !recorder.set_grad_mode(a, false)) return nullptr;
  Ref result = Ref::steal(recorder.call_object(
      a, {forward.get(), args.data() + first, call.count + 1 - first, nullptr}));
  if (result && has_setup && recorder.is_recording()) {
    const std::vector<Source*> origins(call.count - 1, nullptr);
    const Ref inputs =
        Ref::steal(recorder.build_tuple(a, args.data() + 2, origins.data(), call.count - 1));
    PyObject* setup_args[] = {nullptr, context.get(), inputs.get(), result.get()};
    const Ref done = Ref::steal(
        inputs ? recorder.call_object(a, {setup.get(), setup_args + 1, 3, nullptr}) : nullptr);
    if (!done) result = Ref();
  }
  if (has_grad_mode) {
    if (recorder.is_recording()) {
      recorder.set_grad_mode(a, true);
    } else {
      at::GradMode::set_enabled(true);
    }
  }
  if (!result) return nullptr;
  // An argument that comes back is a new alias of it, unless forward says that it was changed.
  const Ref dirty = Ref::steal(PyObject_GetAttrString(context.get(), "dirty_tensors"));
  PyErr_Clear();
  const auto returned = [&](PyObject* item) {
    if (!is_tensor(item) || std::ranges::find(args, item) == args.end()) return Ref::borrow(item);
    for (Py_ssize_t i = 0; dirty && i < PyTuple_GET_SIZE(dirty.get()); ++i) {
      if (PyTuple_GET_ITEM(dirty.get(), i) == item) return Ref::borrow(item);
    }
    const Ref alias = attribute_of(recorder, a, item, "detach");
    return alias ? Ref::steal(recorder.call_object(a, {alias.get(), nullptr, 0, nullptr})) : Ref();
  };
  if (!PyTuple_CheckExact(result.get())) return returned(result.get()).release();
  std::vector<Ref> kept;
  std::vector<PyObject*> items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i) {
    kept.push_back(returned(PyTuple_GET_ITEM(result.get(), i)));
    if (!kept.back()) return nullptr;
    items.push_back(kept.back().get());
  }
  const std::vector<Source*> origins(items.size(), nullptr);
  return recorder.build_tuple(a, items.data(), origins.data(), items.size());
}

}  // namespace

ModelTable autograd_models() {
  return {{"torch.autograd.function.Function.apply", apply_function}};
}

}  // namespace assay::capture
