// Calls that become one call of Python in the graph (python_calls.h).
#include <torch/csrc/utils/pybind.h>

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "aten/operator_record.h"
#include "aten/runner.h"
#include "capture/code_facts.h"
#include "capture/constant_objects.h"
#include "capture/loop.h"
#include "capture/python_calls.h"
#include "capture/raised.h"
#include "capture/recipe_builder.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// What can be given to every run as it is.
bool is_lasting(Recorder& recorder, PyObject* object) {
  if (is_scalar(object)) return true;
  if (!recorder.touch(object)) return false;
  return is_torch_enum(object) || is_device(object);
}

// Something that each run can be given as long as the program has this very one: a module, a
// function, an instance.
bool has_own_identity(PyObject* object) {
  return !PyMethod_Check(object) && !is_container(object) && !PyIter_Check(object);
}

const PyCodeObject* entered_first(PyObject* function) {
  return reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
}

// Calls of modules are the program's own, whoever makes them.
bool is_of_modules(PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  return file != nullptr && std::string_view(file).find("/torch/nn/") != std::string_view::npos;
}

}  // namespace

void Recorder::take_back(std::size_t first_node) {
  std::unordered_set<const graph::Node*> gone;
  while (nodes_.size() > first_node) {
    gone.insert(nodes_.back());
    graph_->erase(*nodes_.back());
    nodes_.pop_back();
  }
  tracked_.forget(gone);
}

bool Recorder::describe_arguments(PyObject* container, PythonArgument& made, CallTensors& tensors,
                                  int depth) {
  if (!know_contents(container)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(container, i);
    if (!describe_argument(item, made.parts.emplace_back(), tensors, depth + 1)) return false;
  }
  return true;
}

// A function that the program has just defined: its next call defines another one. Its variables
// are those of now: the program may change them after the call.
bool Recorder::describe_function(PyObject* object, PythonArgument& made, CallTensors& tensors,
                                 int depth) {
  auto* function = reinterpret_cast<PyFunctionObject*>(object);
  made.kind = PythonArgument::Kind::function;
  made.object = Ref::borrow(object);
  const auto add = [&](PyObject* part) {
    PythonArgument& described = made.parts.emplace_back();
    return describe_argument(part == nullptr ? Py_None : part, described, tensors, depth + 1);
  };
  PyObject* attributes = function->func_dict;
  if (attributes != nullptr && PyDict_GET_SIZE(attributes) == 0) attributes = nullptr;
  if (!add(function->func_defaults) || !add(function->func_kwdefaults) || !add(attributes)) {
    return false;
  }
  PyObject* closure = function->func_closure;
  for (Py_ssize_t i = 0; closure != nullptr && i < PyTuple_GET_SIZE(closure); ++i) {
    PyObject* cell = PyTuple_GET_ITEM(closure, i);
    PyObject* contents = PyCell_GET(cell);
    if (contents == nullptr) {
      made.parts.emplace_back().kind = PythonArgument::Kind::nothing;
      continue;
    }
    const Tracked* tracked = tracked_.find(cell);
    if (tracked == nullptr) return false;
    if (tracked->source != nullptr && !tracked->is_known) {  // a variable of an outer function
      Source* source = sources_.get(Access::contents, tracked->source, nullptr);
      source->checks.present = true;
      arrived(contents, source);
    }
    if (!add(contents)) return false;
  }
  return true;
}

bool Recorder::describe_argument(PyObject* object, PythonArgument& made, CallTensors& tensors,
                                 int depth) {
  if (depth > 20) return false;
  if (is_array(object) || is_array_scalar(object)) return describe_array(object, made, tensors);
  if (is_tensor(object)) {
    graph::Node* node = node_of(object);
    if (node == nullptr || has_open_size(object)) return false;
    tensors.are_fixed = false;
    tensors.vary = tensors.vary || has_varying_size(object);
    made.kind = PythonArgument::Kind::tensor;
    made.index = tensors.nodes.items.size();
    tensors.nodes.items.emplace_back(node);
    return true;
  }
  if (is_scalar(object)) use_sizes(object);
  if (is_lasting(*this, object)) {
    made.object = Ref::borrow(object);
    return true;
  }
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    made.kind = PyList_Check(object) ? PythonArgument::Kind::list : PythonArgument::Kind::tuple;
    return describe_arguments(object, made, tensors, depth);
  }
  if (PyDict_CheckExact(object)) {
    if (!know_contents(object)) return false;
    made.kind = PythonArgument::Kind::dict;
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(object, &position, &key, &value) != 0) {
      if (!is_scalar(key)) return false;
      made.parts.emplace_back().object = Ref::borrow(key);
      if (!describe_argument(value, made.parts.emplace_back(), tensors, depth + 1)) return false;
    }
    return true;
  }
  if (PySlice_Check(object)) {
    if (!know_contents(object)) return false;
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    made.kind = PythonArgument::Kind::slice;
    for (PyObject* bound : {slice->start, slice->stop, slice->step}) {
      if (!describe_argument(bound, made.parts.emplace_back(), tensors, depth + 1)) return false;
    }
    return true;
  }
  Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr) return false;
  if (tracked->kind == Tracked::Kind::constant &&
      (is_identity_object(object) || describes_arrays(object))) {
    made.object = Ref::borrow(object);
    return true;
  }
  if (tracked->source != nullptr && has_own_identity(object)) {
    guard_identity(object);
    made.object = Ref::borrow(object);
    return true;
  }
  if (PyFunction_Check(object)) return describe_function(object, made, tensors, depth);
  const auto add = [&](PyObject* part) {
    return describe_argument(part, made.parts.emplace_back(), tensors, depth + 1);
  };
  if (PyMethod_Check(object)) {
    made.kind = PythonArgument::Kind::method;
    if (tracked->source != nullptr) {
      arrived(PyMethod_GET_FUNCTION(object),
              sources_.get(Access::callee, tracked->source, nullptr));
      arrived(PyMethod_GET_SELF(object), sources_.get(Access::receiver, tracked->source, nullptr));
    }
    return add(PyMethod_GET_FUNCTION(object)) && add(PyMethod_GET_SELF(object));
  }
  return false;
}

void Recorder::add_python_call_node(PythonCall call, CallTensors tensors,
                                    const std::vector<PyObject*>& items) {
  std::vector<graph::ValueMeta> metas;
  for (PyObject* item : items) {
    const TensorForm form = form_of(item);
    const Ref kept = is_tensor(item) ? Ref::borrow(item) : tensor_of_array(item);
    const at::Tensor& tensor = tensor_of(kept.get());
    std::vector<std::int64_t> strides;
    if (form != TensorForm::tensor) strides = tensor.strides().vec();
    call.results.push_back({tensor.scalar_type(), tensor.requires_grad(), tensor.sizes().vec(),
                            form, std::move(strides)});
    metas.push_back(aten::describe(aten::Value(c10::IValue(tensor))));
  }
  const bool is_one = items.size() == 1;
  graph::Node& node = graph_->call_function(
      is_one ? kPythonCallOne : kPythonCall,
      {add_python_call(std::move(call)), graph::Argument(std::move(tensors.nodes))});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  const auto track = [&](PyObject* item, graph::Node& computes) {
    if (tracked_.find(item) != nullptr) return;
    Tracked& tracked = tracked_.add(item, Tracked::Kind::node);
    tracked.node = &computes;
    tracked.varying = tensors.vary ? ~std::uint64_t{0} : 0;
    tracked.is_fixed = tensors.are_fixed;
  };
  if (is_one) {
    node.meta.value = metas[0];
    track(items[0], node);
    return;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    graph::Node& taken =
        graph_->call_function("operator.getitem", {&node, static_cast<std::int64_t>(i)});
    taken.meta.stack = node.meta.stack;
    taken.meta.value = metas[i];
    nodes_.push_back(&taken);
    track(items[i], taken);
  }
  node.meta.value = {std::move(metas)};
}

Recorder::TensorVersions Recorder::versions_of_tensors() {
  TensorVersions versions;
  for (const auto& [object, tracked] : tracked_) {
    const bool is_gone = tracked.weak && PyWeakref_GET_OBJECT(tracked.weak.get()) != object;
    if (is_gone || !is_tensor(object)) continue;
    const at::Tensor& tensor = tensor_of(object);
    const std::int64_t version = tensor.is_inference() ? -1 : tensor._version();
    versions.emplace_back(tensor, version);
  }
  return versions;
}

// Also of what was first seen in the meantime, and is older: an input of the graph.
bool Recorder::are_unchanged(const TensorVersions& versions) const {
  const auto is_unchanged = [](const std::pair<at::Tensor, std::int64_t>& known) {
    return known.second >= 0 && known.first._version() == known.second;
  };
  const auto is_unchanged_input = [](const Input& input) {
    return !input.tensor.defined() ||
           (!input.tensor.is_inference() && input.tensor._version() == input.version);
  };
  return std::ranges::all_of(versions, is_unchanged) &&
         std::ranges::all_of(inputs_, is_unchanged_input);
}

PyObject* Recorder::call_transformed(const Call& call) {
  PyObject* result = call_unseen(call);
  std::vector<PyObject*> items;
  if (result == nullptr || !tensors_of_result(result, items)) return result;
  for (PyObject* item : items) {
    if (tracked_.find(item) != nullptr) continue;
    graph::Node& node = graph_->call_function("assay.transformed", {});  // taken back with the call
    nodes_.push_back(&node);
    tracked_.add(item, Tracked::Kind::node).node = &node;
  }
  is_local(result);
  return result;
}

PyObject* Recorder::call_as_one(Activation& a, const Call& call, PyTypeObject* context,
                                Followed followed) {
  const auto plainly = [&](const char* why) { return call_plainly(a, call, why); };
  // What has changed in the program changes after the graph has run, and the call is in the graph.
  if (!effects_.empty()) return plainly("a call of Python after a change of an older object");
  PythonCall made_again;
  CallTensors tensors;
  bool is_known = true;
  if (followed == Followed::all) {
    made_again.callable.object = Ref::borrow(call.callable);
  } else {
    is_known = describe_argument(call.callable, made_again.callable, tensors);
  }
  for (std::size_t i = 0; is_known && i < call.count; ++i) {
    is_known = describe_argument(call.args[i], made_again.arguments.emplace_back(), tensors);
  }
  if (!is_known) return plainly("a call of Python with an object that may change");
  made_again.names = Ref::borrow(call.names);
  const TensorVersions versions = versions_of_tensors();
  const std::size_t first_node = nodes_.size();
  const SizeNumbers::Mark size_numbers = size_numbers_.mark();
  const std::size_t regions = autocast_.size();
  // C code sets another mode for what it calls back.
  const bool mode = std::exchange(grad_mode_, false);
  const std::uint64_t outer_start = std::exchange(one_call_start_, tracked_.order());
  if (calls_around_ + calls_as_one_++ == 0) one_call_changes_older_ = false;
  creating_.push_back(context);
  if (followed == Followed::what_it_calls_back) {
    entering_natively_ = entered_first(call.callable);
  }
  PyObject* result = nullptr;
  {
    std::optional<SuspendScope> suspended;
    if (followed == Followed::nothing) suspended.emplace(*this);
    result = PyObject_Vectorcall(call.callable, call.args, call.positional(), call.names);
  }
  if (!is_recording()) return result;  // a break inside
  entering_natively_ = nullptr;
  --calls_as_one_;
  creating_.pop_back();
  one_call_start_ = outer_start;
  grad_mode_ = mode;
  if (result == nullptr) {
    const Ref error = take_raised();
    if (stop(a, "a call of Python raised", false)) set_raised(error);
    return nullptr;
  }
  const auto end = [&](const char* why) -> PyObject* {
    if (!stop(a, why)) Py_CLEAR(result);
    return result;
  };
  if (calls_as_one_ == 0 && are_taken_back(one_call_dicts_)) effects_.clear();
  one_call_dicts_.clear();
  const auto first = nodes_.begin() + static_cast<std::ptrdiff_t>(first_node);
  const auto writes = [](const graph::Node* node) { return writes_to_argument(*node); };
  if (std::any_of(first, nodes_.end(), writes) && !are_unchanged(versions)) {
    return end("a call of Python writes to a tensor");
  }
  if (!effects_.empty() || one_call_changes_older_ || autocast_.size() != regions) {
    return end("a call of Python changes something");
  }
  const bool is_random = std::any_of(first, nodes_.end(), [](const graph::Node* node) {
    return aten::operator_record(*node).is_random;
  });
  is_random_ = is_random_ || is_random;
  size_numbers_.truncate(size_numbers);
  take_back(first_node);
  std::vector<PyObject*> items;
  const auto is_new_tensor = [&](PyObject* item) {
    return Py_TYPE(item) == tensor_type() && tracked_.find(item) == nullptr;
  };
  const bool may_be_nothing = followed == Followed::nothing;
  if (!tensors_of_result(result, items) || (items.empty() && !may_be_nothing) ||
      !std::ranges::all_of(items, is_new_tensor)) {
    return end("a call of Python returns other objects than new tensors");
  }
  expected_operators_ = watch_.count();
  made_again.results_vary = tensors.vary;
  add_python_call_node(std::move(made_again), std::move(tensors), items);
  return made(a, result, "a call of Python");
}

PyObject* Recorder::call_around(Activation& a, const Call& call) {
  const std::size_t effects = effects_.size();
  const std::uint64_t outer_start = std::exchange(one_call_start_, tracked_.order());
  if (calls_as_one_ + calls_around_++ == 0) one_call_changes_older_ = false;
  entering_natively_ = entered_first(call.callable);
  PyObject* result = PyObject_Vectorcall(call.callable, call.args, call.positional(), call.names);
  if (!is_recording()) return result;  // a break inside
  entering_natively_ = nullptr;
  --calls_around_;
  one_call_start_ = outer_start;
  if (result == nullptr) return nullptr;
  expected_operators_ = watch_.count();
  if (effects_.size() != effects || one_call_changes_older_) {
    if (!stop(a, "what a function of torch calls back changes something")) Py_CLEAR(result);
    return result;
  }
  return made(a, result, "a function of torch that calls back");
}

// A module whose parameters were others for a while (torch.func.functional_call) is the same again.
bool Recorder::are_taken_back(const std::vector<DictBefore>& changed) const {
  const auto is_among_them = [&](const RecordedEffect& effect) {
    return (effect.kind == Effect::Kind::set_item || effect.kind == Effect::Kind::delete_item) &&
           std::ranges::find(changed, effect.target.get(), &DictBefore::dict) != changed.end();
  };
  const auto is_as_before = [](const DictBefore& before) {
    if (PyDict_GET_SIZE(before.dict) != PyDict_GET_SIZE(before.copy.get())) return false;
    Py_ssize_t positions[2] = {};
    PyObject* keys[2] = {};
    PyObject* values[2] = {};
    while (PyDict_Next(before.dict, &positions[0], &keys[0], &values[0]) != 0) {
      PyDict_Next(before.copy.get(), &positions[1], &keys[1], &values[1]);
      if (keys[0] != keys[1] || values[0] != values[1]) return false;
    }
    return true;
  };
  return std::ranges::all_of(effects_, is_among_them) && std::ranges::all_of(changed, is_as_before);
}

bool Recorder::runs_natively(const _PyInterpreterFrame& frame) {
  if (calls_as_one_ + calls_around_ == 0) return false;
  if (entering_natively_ == frame.f_code) {
    entering_natively_ = nullptr;
    return true;
  }
  // What the program itself calls is followed, and so is what it gave to be called.
  const Activation* innermost = current_activation();
  const _PyInterpreterFrame* caller = innermost->thread->cframe->current_frame;
  // What torch calls is ours in a routed process.
  return caller != innermost->frame &&
         (is_code_of_ours(frame.f_code) ||
          (is_library_code(frame.f_code) && !is_of_modules(frame.f_code)));
}

void Recorder::called_back(Activation& inlined) {
  grad_mode_ = at::GradMode::is_enabled();
  const auto is_new = [&](PyObject* given) {
    return given != nullptr && is_plain_tensor(given) && tracked_.find(given) == nullptr;
  };
  const auto add = [&](PyObject* tensor) {
    graph::Node& node = graph_->call_function("assay.transformed", {});  // taken back with the call
    nodes_.push_back(&node);
    tracked_.add(tensor, Tracked::Kind::node).node = &node;
  };
  const PyCodeObject* code = inlined.code;
  const int given = code->co_argcount + code->co_kwonlyargcount +
                    ((code->co_flags & CO_VARARGS) != 0) + ((code->co_flags & CO_VARKEYWORDS) != 0);
  std::function<void(PyObject*, int)> look = [&](PyObject* object, int depth) {
    if (object == nullptr || depth > 20) return;
    if (PyCell_Check(object)) return look(PyCell_GET(object), depth + 1);
    if (is_new(object)) return add(object);
    if (PyTuple_Check(object) || PyList_CheckExact(object)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
        look(PySequence_Fast_GET_ITEM(object, i), depth + 1);
      }
    } else if (PyDict_CheckExact(object)) {
      Py_ssize_t position = 0;
      PyObject* key = nullptr;
      PyObject* value = nullptr;
      while (PyDict_Next(object, &position, &key, &value) != 0) look(value, depth + 1);
    }
    if (depth == 0) is_local(object);
  };
  for (int i = 0; i < given; ++i) look(inlined.locals[i], 0);
}

}  // namespace assay::capture
