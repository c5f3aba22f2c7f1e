// Context managers of torch that change a state of the thread.
#include <ATen/autocast_mode.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>

#include <string>

#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

Ref attribute(Recorder& recorder, Activation& a, PyObject* object, const char* name) {
  const Ref text = Ref::steal(PyUnicode_InternFromString(name));
  return Ref::steal(recorder.get_attribute(a, object, text.get()));
}

bool set_attribute(Recorder& recorder, Activation& a, PyObject* object, const char* name,
                   PyObject* value) {
  const Ref text = Ref::steal(PyUnicode_InternFromString(name));
  return recorder.set_attribute(a, object, text.get(), value);
}

PyObject* to_bool(bool value) { return value ? Py_True : Py_False; }

void set_autocast(const aten::AutocastState& state) {
  at::autocast::set_autocast_enabled(at::kCPU, state.is_enabled);
  at::autocast::set_autocast_dtype(at::kCPU, state.dtype);
  at::autocast::set_autocast_cache_enabled(state.is_cache_enabled);
}

// The state in three attributes of an autocast object; false if they are not all there.
bool read_state(Recorder& recorder, Activation& a, PyObject* manager,
                std::initializer_list<const char*> names, aten::AutocastState& state) {
  std::vector<Ref> values;
  for (const char* name : names) {
    values.push_back(attribute(recorder, a, manager, name));
    if (!values.back()) {
      PyErr_Clear();
      return false;
    }
  }
  if (!PyBool_Check(values[0].get()) || !THPDtype_Check(values[1].get()) ||
      !PyBool_Check(values[2].get())) {
    return false;
  }
  state = {values[0].get() == Py_True, reinterpret_cast<THPDtype*>(values[1].get())->scalar_type,
           values[2].get() == Py_True};
  return recorder.is_recording();
}

bool is_for_cpu(Recorder& recorder, Activation& a, PyObject* manager) {
  if (!recorder.touch(manager)) return false;
  const Ref device = attribute(recorder, a, manager, "device");
  if (!device) PyErr_Clear();
  return device && PyUnicode_Check(device.get()) && to_string(device.get()) == "cpu";
}

// Both do what the Python functions do, and add a node.
PyObject* enter_autocast(Recorder& recorder, Activation& a, const Call& call) {
  aten::AutocastState wanted;
  if (call.count != 1 || !is_for_cpu(recorder, a, call.args[0]) ||
      !read_state(recorder, a, call.args[0], {"_enabled", "fast_dtype", "_cache_enabled"},
                  wanted)) {
    return recorder.call_plainly(a, call, "a region of autocast that is not modelled");
  }
  PyObject* manager = call.args[0];
  const auto before = aten::AutocastState::current();
  const Ref dtype = Ref::borrow(reinterpret_cast<PyObject*>(torch::getTHPDtype(before.dtype)));
  recorder.is_constant(dtype.get());
  if (!set_attribute(recorder, a, manager, "prev_cache_enabled",
                     to_bool(before.is_cache_enabled)) ||
      !set_attribute(recorder, a, manager, "prev", to_bool(before.is_enabled)) ||
      !set_attribute(recorder, a, manager, "prev_fastdtype", dtype.get())) {
    return nullptr;
  }
  at::autocast::increment_nesting();
  set_autocast(wanted);
  if (recorder.is_recording()) recorder.entered_autocast(manager, before);
  return Py_NewRef(manager);
}

PyObject* exit_autocast(Recorder& recorder, Activation& a, const Call& call) {
  const Recorder::AutocastRegion* region = recorder.autocast_region();
  aten::AutocastState before;
  if (call.count != 4 || region == nullptr || region->manager != call.args[0] ||
      !(region->inside == aten::AutocastState::current()) ||
      !read_state(recorder, a, call.args[0], {"prev", "prev_fastdtype", "prev_cache_enabled"},
                  before) ||
      !(region->before == before)) {
    return recorder.call_plainly(a, call, "a region of autocast from before the segment ends");
  }
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  set_autocast(before);
  recorder.left_autocast();
  return Py_NewRef(Py_False);
}

// A region that a profiler shows. Nobody profiles: it does nothing, also where its end is not seen.
PyObject* enter_record_function(Recorder& recorder, Activation& a, const Call& call) {
  static PyObject* const is_profiling = [] {
    const Ref module = Ref::steal(import_module("torch._C._autograd"));
    return PyObject_GetAttrString(module.get(), "_profiler_enabled");
  }();
  if (call.count != 1 || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "a region for the profiler that is not known");
  }
  recorder.is_constant(is_profiling);
  PyObject* no_args[] = {nullptr};
  const Ref profiling =
      Ref::steal(recorder.call_question(a, {is_profiling, no_args + 1, 0, nullptr}));
  if (!profiling) return nullptr;
  if (profiling.get() != Py_False) return recorder.call_plainly(a, call, "a profiler is running");
  if (!set_attribute(recorder, a, call.args[0], "run_callbacks_on_exit", Py_False)) return nullptr;
  return Py_NewRef(call.args[0]);
}

PyObject* exit_record_function(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 0 || !recorder.touch(call.args[0])) {
    return recorder.call_plainly(a, call, "a region for the profiler that is not known");
  }
  const Ref runs = attribute(recorder, a, call.args[0], "run_callbacks_on_exit");
  if (!runs) return nullptr;
  if (runs.get() != Py_False || !recorder.is_recording()) {
    return recorder.call_plainly(a, call, "a region for the profiler ends");
  }
  if (!set_attribute(recorder, a, call.args[0], "run_callbacks_on_exit", Py_True)) return nullptr;
  return Py_NewRef(Py_None);
}

}  // namespace

ModelTable context_models() {
  return {
      {"torch.amp.autocast_mode.autocast.__enter__", enter_autocast},
      {"torch.amp.autocast_mode.autocast.__exit__", exit_autocast},
      {"torch.autograd.profiler.record_function.__enter__", enter_record_function},
      {"torch.autograd.profiler.record_function.__exit__", exit_record_function},
  };
}

}  // namespace assay::capture
