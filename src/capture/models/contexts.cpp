// Context managers of torch that change a state of the thread.
#include <ATen/autocast_mode.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>

#include <string>

#include "capture/models/table.h"

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

}  // namespace

ModelTable context_models() {
  return {
      {"torch.amp.autocast_mode.autocast.__enter__", enter_autocast},
      {"torch.amp.autocast_mode.autocast.__exit__", exit_autocast},
  };
}

}  // namespace assay::capture
