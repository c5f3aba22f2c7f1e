#include "capture/segment.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "aten/rng_state.h"
#include "aten/runner.h"
#include "capture/compile_segment.h"
#include "capture/cpython_311.h"
#include "capture/object_graph.h"
#include "capture/python_calls.h"
#include "capture/torch_types.h"

namespace assay::capture {

c10::IValue to_input(PyObject* object) {
  if (is_tensor(object)) return tensor_of(object);
  if (PyBool_Check(object)) return object == Py_True;
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  const long long number = PyLong_AsLongLong(object);
  if (number == -1 && PyErr_Occurred() != nullptr) throw PythonError{};
  return static_cast<std::int64_t>(number);
}

namespace {

// Graphs with more nodes than this run without the GIL.
constexpr std::size_t kSmallGraph = 6;

int replace_contents(PyObject* target, PyObject* contents) {
  if (PyList_Check(target)) {
    return PyList_SetSlice(target, 0, PyList_GET_SIZE(target), contents);
  }
  // set, dict, deque and their subclasses: clear and fill through their builtin base's methods.
  PyObject* base = PyODict_Check(target)  ? reinterpret_cast<PyObject*>(&PyODict_Type)
                   : PyDict_Check(target) ? reinterpret_cast<PyObject*>(&PyDict_Type)
                   : PySet_Check(target)  ? reinterpret_cast<PyObject*>(&PySet_Type)
                                          : reinterpret_cast<PyObject*>(Py_TYPE(target));
  const Ref cleared = Ref::steal(PyObject_CallMethod(base, "clear", "O", target));
  if (!cleared) return -1;
  const char* update = PyDict_Check(target) || PySet_Check(target) ? "update" : "extend";
  const Ref updated = Ref::steal(PyObject_CallMethod(base, update, "OO", target, contents));
  return updated ? 0 : -1;
}

int redo(const Effect& effect, const std::vector<Ref>& made) {
  const auto object = [&](int recipe) {
    return recipe < 0 ? nullptr : made[static_cast<std::size_t>(recipe)].get();
  };
  PyObject* target = object(effect.target);
  PyObject* key = object(effect.key);
  PyObject* value = object(effect.value);
  switch (effect.kind) {
    case Effect::Kind::set_item:
      return PyODict_Check(target) ? PyODict_SetItem(target, key, value)
                                   : PyDict_SetItem(target, key, value);
    case Effect::Kind::delete_item:
      return PyODict_Check(target) ? PyODict_DelItem(target, key) : PyDict_DelItem(target, key);
    case Effect::Kind::append:
      return PyList_Append(target, value);
    case Effect::Kind::replace:
      return replace_contents(target, value);
    case Effect::Kind::call_method: {
      const Ref first = Ref::steal(PyTuple_Pack(1, target));
      const Ref arguments = first ? Ref::steal(PySequence_Concat(first.get(), value)) : Ref();
      const Ref result = arguments ? Ref::steal(PyObject_CallObject(key, arguments.get())) : Ref();
      return result ? 0 : -1;
    }
    case Effect::Kind::call: {
      const Ref result = Ref::steal(PyObject_Call(key, value, target));
      return result ? 0 : -1;
    }
    case Effect::Kind::set_contents:
      return PyCell_Set(target, value);
    case Effect::Kind::set_member:
      return Py_TYPE(key)->tp_descr_set(key, target, value);
    case Effect::Kind::set_attribute:
      return PyObject_SetAttr(target, key, value);
    case Effect::Kind::set_grad_mode:
      at::GradMode::set_enabled(value == Py_True);
      return 0;
  }
  return 0;
}

// Enters the regions of autocast that the frame is in after a segment: what the graph casts to
// another dtype is remembered for them. Back to what was before unless `stay` is called, also where
// a graph raised inside of a region of its own.
class AutocastNesting {
 public:
  explicit AutocastNesting(const std::vector<aten::AutocastState>& regions)
      : regions_(regions), before_(aten::AutocastState::current()), depth_(depth()) {
    for (std::size_t i = 0; i < regions_.size(); ++i) at::autocast::increment_nesting();
  }
  ~AutocastNesting() {
    if (stays_) return;
    for (int i = depth(); i > depth_; --i) {
      if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    }
    set(before_);
  }
  AutocastNesting(const AutocastNesting&) = delete;
  AutocastNesting& operator=(const AutocastNesting&) = delete;
  void stay() {
    stays_ = true;
    if (!regions_.empty()) set(regions_.back());
  }

 private:
  static int depth() {
    const int inside = at::autocast::increment_nesting();
    at::autocast::decrement_nesting();
    return inside - 1;
  }
  static void set(const aten::AutocastState& state) {
    at::autocast::set_autocast_enabled(at::kCPU, state.is_enabled);
    at::autocast::set_autocast_dtype(at::kCPU, state.dtype);
    at::autocast::set_autocast_cache_enabled(state.is_cache_enabled);
  }
  const std::vector<aten::AutocastState>& regions_;
  aten::AutocastState before_;
  int depth_;
  bool stays_ = false;
};

}  // namespace

Segment::Arguments Segment::arguments_of(const GuardValues& values) const {
  Arguments arguments;
  for (const GraphInput& input : inputs) {
    arguments.push_back(to_input(values.objects[static_cast<std::size_t>(input.step)]));
  }
  return arguments;
}

Segment::InputStates Segment::states_of_inputs(const GuardValues& values) const {
  InputStates states;
  if (!mutates_inputs) return states;
  for (const GraphInput& input : inputs) {
    PyObject* object = values.objects[static_cast<std::size_t>(input.step)];
    if (!is_tensor(object)) continue;
    const at::Tensor& tensor = tensor_of(object);
    states.push_back({tensor.is_inference() ? -1 : tensor._version(), tensor.requires_grad()});
  }
  return states;
}

bool Segment::are_inputs_unchanged(const GuardValues& values, const InputStates& before) const {
  const auto counts = [](const InputState& state) { return state.version >= 0; };
  return std::ranges::all_of(before, counts) && states_of_inputs(values) == before;
}

bool Segment::shares_memory_as_before(const GuardValues& values) const {
  if (!sharing) return true;
  const Arguments arguments = arguments_of(values);
  return sharing->same_sharing({arguments.data(), arguments.size()});
}

namespace {

void call_with_objects(const ObjectGraph& graph, const std::vector<GraphInput>& inputs,
                       const GuardValues& values, Outputs& outputs) {
  c10::SmallVector<PyObject*, 128> objects = {nullptr};
  for (const GraphInput& input : inputs) {
    objects.push_back(values.objects[static_cast<std::size_t>(input.step)]);
  }
  graph.call_objects({objects.data() + 1, objects.size() - 1}, outputs);
}

void call_unlocked(const CompiledGraph& compiled, const graph::Graph& graph,
                   std::span<c10::IValue> inputs, Outputs& outputs) {
  if (graph.size() <= kSmallGraph + inputs.size()) return compiled.call(inputs, outputs);
  const pybind11::gil_scoped_release unlocked;
  compiled.call(inputs, outputs);
}

// Where the graph raises for other sizes, the program may do something else.
bool may_fit(SizedRuns& sizes, std::span<const c10::IValue> inputs,
             std::vector<std::int64_t>& numbers) {
  if (sizes.gave_up()) return false;
  try {
    return sizes.note(sizes.pass_checks(inputs, numbers));
  } catch (const std::exception&) {
    return sizes.note(false);
  }
}

bool call_probe(SizedRuns& sizes, std::span<const c10::IValue> inputs,
                std::vector<std::int64_t>& numbers, Outputs& outputs,
                const SizedRuns::CompileParts& compile) {
  c10::SmallVector<c10::IValue, 16> arguments(inputs.begin(), inputs.end());
  bool fits = false;
  try {
    const pybind11::gil_scoped_release unlocked;
    fits = sizes.call_probe({arguments.data(), arguments.size()}, numbers, outputs, compile);
  } catch (const pybind11::error_already_set&) {
    throw;
  } catch (const std::exception&) {
    fits = false;
  }
  return sizes.note(fits);
}

}  // namespace

bool Segment::call_graph(const GuardValues& values, std::vector<std::int64_t>& numbers,
                         Outputs& outputs) const {
  if (sizes != nullptr) return call_sized(values, numbers, outputs);
  if (takes_objects != nullptr) {
    call_with_objects(*takes_objects, inputs, values, outputs);
    return true;
  }
  Arguments arguments = arguments_of(values);
  call_unlocked(*compiled, *graph, {arguments.data(), arguments.size()}, outputs);
  return true;
}

bool Segment::call_sized(const GuardValues& values, std::vector<std::int64_t>& numbers,
                         Outputs& outputs) const {
  Arguments arguments = arguments_of(values);
  const std::span<c10::IValue> span{arguments.data(), arguments.size()};
  const auto compile_parts = [this](const FixedParts& parts) {
    return compile_fixed_parts(*this, *settings, parts);
  };
  std::shared_ptr<SizedRuns::Run> run = sizes->find(span);
  if (run == nullptr) {
    if (!may_fit(*sizes, span, numbers)) return false;
    if (sizes->has_probe()) {
      if (!call_probe(*sizes, span, numbers, outputs, compile_parts)) return false;
      sizes->add(span, numbers)->calls = 1;
      return true;
    }
    run = sizes->add(span, numbers);
  } else {
    numbers = run->numbers;
    if (sizes->checks_every_call() && !may_fit(*sizes, span, numbers)) return false;
  }
  if (run->compiled == nullptr && ++run->calls > sizes->calls_before_compiling() &&
      sizes->makes_room()) {
    std::vector<c10::IValue> examples(arguments.begin(), arguments.end());
    run->compiled = compile_graph(*this, *settings, std::move(examples)).compiled;
  }
  // Kept: another thread may make room meanwhile.
  const std::shared_ptr<const CompiledGraph> called = run->compiled;
  if (called == nullptr) {
    const pybind11::gil_scoped_release unlocked;
    sizes->call_any(span, outputs, compile_parts);
  } else if (const auto* objects = dynamic_cast<const ObjectGraph*>(called.get())) {
    call_with_objects(*objects, inputs, values, outputs);
  } else {
    call_unlocked(*called, *graph, span, outputs);
  }
  return true;
}

bool Segment::run_graph(const GuardValues& values, std::vector<std::int64_t>& numbers,
                        Outputs& outputs) const {
  // If the graph raises, the loop runs this part again, from the same random state.
  std::optional<aten::RestoreGeneratorScope> generator;
  if (is_random) generator.emplace();
  const bool grad_mode = at::GradMode::is_enabled();
  bool fits = false;
  try {
    if (runs_with_grad) at::GradMode::set_enabled(true);
    fits = call_graph(values, numbers, outputs);
  } catch (...) {
    at::GradMode::set_enabled(grad_mode);
    throw;
  }
  at::GradMode::set_enabled(grad_mode);
  if (generator && fits) generator->release();
  return fits;
}

namespace {

// As eager raises it; a note says where, because the frame has not come to that line.
void set_exception_of_operator(const aten::OperatorError& error) {
  PyObject* found = PyDict_GetItemString(PyEval_GetBuiltins(), error.raised().c_str());
  PyObject* type = found != nullptr && PyExceptionClass_Check(found) ? found : PyExc_RuntimeError;
  const Ref exception =
      Ref::steal(PyObject_CallFunction(type, "s", std::string(error.message()).c_str()));
  if (!exception) return;
  const std::string note =
      std::string("The graph had mutated its inputs when it raised this: ") + error.what();
  if (!Ref::steal(PyObject_CallMethod(exception.get(), "add_note", "s", note.c_str()))) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

}  // namespace

Segment::Replay Segment::replay(Activation& activation, const GuardValues& values) const {
  const InputStates before = states_of_inputs(values);
  has_misfit();
  const auto raised = [&] {
    const bool is_misfit = has_misfit();
    if (is_misfit && (!mutates_inputs || are_inputs_unchanged(values, before))) {
      PyErr_Clear();
      return Replay::misfits;
    }
    return are_inputs_unchanged(values, before) ? Replay::raised : Replay::raised_midway;
  };
  try {
    c10::SmallVector<c10::IValue, 16> outputs;
    std::vector<std::int64_t> numbers;
    AutocastNesting nesting(autocast);
    if (compiled != nullptr && !run_graph(values, numbers, outputs)) return Replay::misfits;
    std::vector<Ref> made = cook(recipes, values, {outputs.data(), outputs.size()}, numbers);
    for (const Effect& effect : effects) {
      if (redo(effect, made) < 0) throw PythonError{};
    }
    nesting.stay();
    if (result >= 0) {
      activation.result = made[static_cast<std::size_t>(result)].release();
      return Replay::done;
    }
    PyObject** end_of_stack = activation.stack + stack_depth;
    std::vector<Ref> dropped;  // after the frame is whole: dropping may run code
    for (const Slot& slot : slots) {
      PyObject** place = activation.locals + slot.index;
      if (place < activation.top) dropped.push_back(Ref::steal(*place));
      *place =
          slot.recipe < 0 ? nullptr : Py_NewRef(made[static_cast<std::size_t>(slot.recipe)].get());
      activation.origins[slot.index] = nullptr;
    }
    for (PyObject** place = end_of_stack; place < activation.top; ++place) {
      dropped.push_back(Ref::steal(*place));
      *place = nullptr;
    }
    activation.top = end_of_stack;
    activation.next = end;
    return Replay::done;
  } catch (const PythonError&) {
    return raised();
  } catch (const aten::OperatorError& error) {
    const Replay outcome = raised();
    if (outcome == Replay::misfits) return outcome;
    if (outcome == Replay::raised_midway) {
      set_exception_of_operator(error);
    } else {
      pybind11::detail::try_translate_exceptions();
    }
    return outcome;
  } catch (pybind11::error_already_set& error) {
    error.restore();
    return raised();
  } catch (...) {
    pybind11::detail::try_translate_exceptions();
    return raised();
  }
}

}  // namespace assay::capture
