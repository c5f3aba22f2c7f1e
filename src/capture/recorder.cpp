#include "capture/recorder.h"

#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "capture/code_facts.h"
#include "capture/constant_objects.h"
#include "capture/dict_order.h"
#include "capture/recipe_builder.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

// Leaves the thread's regions of autocast while it lives, if they are not those of `wanted`. What
// has been cast in them is forgotten: a backend may trace with tensors of its own.
class OutsideAutocast {
 public:
  OutsideAutocast(const aten::AutocastState& wanted, bool is_inside)
      : saved_(aten::AutocastState::current()), is_needed_(is_inside || !(saved_ == wanted)) {
    if (!is_needed_) return;
    depth_ = at::autocast::increment_nesting();
    for (int i = 0; i < depth_; ++i) at::autocast::decrement_nesting();
    at::autocast::clear_cache();
    set(wanted);
  }
  ~OutsideAutocast() {
    if (!is_needed_) return;
    at::autocast::clear_cache();
    for (int i = 1; i < depth_; ++i) at::autocast::increment_nesting();
    set(saved_);
  }
  OutsideAutocast(const OutsideAutocast&) = delete;
  OutsideAutocast& operator=(const OutsideAutocast&) = delete;

 private:
  static void set(const aten::AutocastState& state) {
    at::autocast::set_autocast_enabled(at::kCPU, state.is_enabled);
    at::autocast::set_autocast_dtype(at::kCPU, state.dtype);
    at::autocast::set_autocast_cache_enabled(state.is_cache_enabled);
  }
  aten::AutocastState saved_;
  bool is_needed_;
  int depth_ = 0;  // one more than there are regions
};

}  // namespace

// ---- Life of a segment ----

void Recorder::begin(Activation& root) {
  // A collection may close generators and run finalizers of anybody's objects in the middle of the
  // program: what they do is not part of the segment.
  collects_garbage_ = PyGC_Disable() != 0;
  root_ = &root;
  // To let go of an object may run Python code, here and below: a callback of a weak reference.
  const SuspendScope not_followed(*this);
  start_ = root.instruction;
  handling_ = 0;
  after_pop_except_ = false;
  no_exception_ = false;
  creating_.clear();
  sources_ = SourceTree();
  tracked_.clear();
  lookups_.clear();
  subclass_checks_.clear();
  looked_up_.clear();
  effects_.clear();
  saved_.clear();
  known_members_.clear();
  distinct_.clear();
  keys_.clear();
  writes_to_classes_ = false;
  expected_operators_ = watch_.count();
  nodes_.clear();
  inputs_.clear();
  autocast_.clear();
  inlined_.clear();
  entered_at_.clear();
  stacks_ = graph::StackTable();
  graph_ = std::make_shared<graph::Graph>("GraphModule");
  state_ = guards::GlobalState::current();
  grad_mode_ = initial_grad_mode_ = state_.grad_mode;
  add_slots(root);
  watch_.forget();
  watch_.start();
  checkpoint(root);
}

void Recorder::add_slots(Activation& root) {
  const auto count = static_cast<std::size_t>(root.top - root.locals);
  const auto variables = static_cast<std::size_t>(root.code->co_nlocalsplus);
  const std::vector<bool>& live = live_locals(root.code, root.instruction);
  initial_slots_.assign(root.locals, root.top);
  initial_origins_.assign(count, nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    root.origins[i] = nullptr;
    PyObject* object = root.locals[i];
    const std::string name =
        i < variables
            ? to_string(PyTuple_GET_ITEM(root.code->co_localsplusnames, static_cast<Py_ssize_t>(i)))
            : "stack" + std::to_string(i - variables);
    Source* source = sources_.slot(static_cast<Py_ssize_t>(i), name);
    if (object == nullptr) {
      if (i >= variables || live[i]) source->checks.absent = true;
    } else if (is_scalar(object)) {
      root.origins[i] = initial_origins_[i] = source;
    } else {
      arrived(object, source);
    }
  }
}

void Recorder::checkpoint(Activation& root) {
  if (after_pop_except_ && handling_ > 0) --handling_;
  after_pop_except_ = instruction_at(root.code, root.instruction).opcode == POP_EXCEPT;
  checkpoint_ = {tracked_.order(),        sources_.size(), lookups_.size(),
                 subclass_checks_.size(), effects_.size(), nodes_.size(),
                 distinct_.size(),        grad_mode_,      autocast_};
  if (saved_.empty()) return;
  const SuspendScope not_followed(*this);
  saved_.clear();
}

void Recorder::roll_back() {
  const SuspendScope not_followed(*this);
  while (nodes_.size() > checkpoint_.nodes) {
    graph_->erase(*nodes_.back());
    nodes_.pop_back();
  }
  tracked_.truncate(checkpoint_.tracked);
  std::erase_if(keys_, [&](const Source* source) {
    return source->id >= static_cast<int>(checkpoint_.sources);
  });
  std::erase_if(inputs_, [&](const Input& input) {
    if (input.source->id < static_cast<int>(checkpoint_.sources)) return false;
    graph_->erase(*input.placeholder);
    return true;
  });
  sources_.truncate(checkpoint_.sources);
  lookups_.resize(checkpoint_.lookups);
  subclass_checks_.resize(checkpoint_.subclass_checks);
  effects_.resize(checkpoint_.effects);
  distinct_.resize(checkpoint_.distinct);
  grad_mode_ = checkpoint_.grad_mode;
  autocast_ = checkpoint_.autocast;
}

void Recorder::abandon() {
  const SuspendScope not_followed(*this);
  if (std::exchange(collects_garbage_, false)) PyGC_Enable();
  watch_.stop();
  root_ = nullptr;
  inlined_.clear();
  keys_.clear();
  tracked_.clear();
  effects_.clear();
  saved_.clear();
  inputs_.clear();
  nodes_.clear();
  lookups_.clear();
  subclass_checks_.clear();
  graph_ = nullptr;
  sources_ = SourceTree();
}

bool Recorder::finish_with_return(Activation& root) {
  return end_segment(root.instruction, true, {});
}

bool Recorder::stop(Activation& a, std::string reason, bool is_break) {
  if (!is_recording()) return true;
  BreakReason described = describe_break(a, std::move(reason));
  described.is_break = is_break;
  roll_back();
  return end_segment(root_->instruction, false, std::move(described));
}

BreakReason Recorder::describe_break(const Activation& a, std::string reason) const {
  const CodeLine place = line_of(a.code, a.instruction);
  return {std::move(reason), place.file, place.line, place.function, place.text, true};
}

bool Recorder::end_segment(int end, bool is_return, BreakReason reason) {
  watch_.stop();
  Activation& root = *root_;
  const int start = start_;
  auto segment = std::make_unique<Segment>();
  segment->end = end;
  segment->reason = std::move(reason);
  std::vector<c10::IValue> examples;
  {
    RecipeBuilder builder(*this, *segment);
    if (builder.build(is_return)) {
      examples = builder.finish_graph();
    } else {
      if (segment->reason.reason.empty()) segment->reason = describe_break(root, builder.problem());
      segment->guards = nullptr;
    }
  }
  // The backend runs with nothing recorded and nothing kept alive by the recorder, and with the
  // autocast state in which the segment starts.
  const OutsideAutocast outside({state_.autocast, state_.autocast_dtype, state_.autocast_cache},
                                !autocast_.empty());
  abandon();
  return sink_.finished(root, start, std::move(segment), std::move(examples));
}

void Recorder::enter(Activation& inlined) {
  inlined_.push_back(&inlined);
  entered_at_.push_back(tracked_.order());
  // CPython has made these two for the frame.
  const PyCodeObject* code = inlined.code;
  int next = code->co_argcount + code->co_kwonlyargcount;
  for (const int flag : {CO_VARARGS, CO_VARKEYWORDS}) {
    if ((code->co_flags & flag) == 0) continue;
    PyObject* made_object = inlined.locals[next++];
    if (made_object != nullptr && !is_scalar(made_object) && !PyCell_Check(made_object) &&
        tracked_.find(made_object) == nullptr) {
      tracked_.add(made_object, Tracked::Kind::local).is_known = true;
    }
  }
  // `self` of an __init__ that type.__call__ calls has not been seen before.
  if (creating_.empty()) return;
  PyObject* self = inlined.code->co_argcount > 0 ? inlined.locals[0] : nullptr;
  if (self != nullptr && Py_TYPE(self) == creating_.back() && tracked_.find(self) == nullptr) {
    tracked_.add(self, Tracked::Kind::local).is_known = true;
  }
}

void Recorder::leave(Activation& inlined) {
  if (inlined_.empty() || inlined_.back() != &inlined) return;  // the segment ended meanwhile
  inlined_.pop_back();
  const SuspendScope not_followed(*this);
  tracked_.sweep(entered_at_.back());
  entered_at_.pop_back();
}

graph::StackTrace Recorder::user_stack() const {
  std::vector<graph::StackFrame> frames;
  const auto add = [&](const Activation& a) {
    if (is_library_code(a.code) && &a != root_) return;  // the user's own lines
    const CodeLine place = line_of(a.code, a.instruction);
    frames.push_back({place.file, place.line, place.function, place.text});
  };
  add(*root_);
  for (const Activation* inlined : inlined_) add(*inlined);
  return frames;
}

// ---- Tracking ----

void Recorder::is_constant(PyObject* object) {
  if (is_scalar(object)) return;
  if (tracked_.find(object) != nullptr) {
    guard_identity(object);  // it also came from a source, which may hold another object next time
    return;
  }
  Tracked& tracked = tracked_.add(object, Tracked::Kind::constant);
  tracked.source = sources_.constant(object);
  tracked.is_touched = true;
}

void Recorder::found_fixed(PyObject* object) {
  if (!is_scalar(object)) arrived(object, sources_.constant(object));
}

void Recorder::guard_identity(PyObject* object) {
  Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr || tracked->kind != Tracked::Kind::source) return;
  tracked->source->checks.identical = Ref::borrow(object);
  tracked->kind = Tracked::Kind::constant;
  tracked->is_touched = true;
}

bool Recorder::arrived(PyObject* object, Source* source) {
  if (is_scalar(object)) {
    source->checks.value = Ref::borrow(object);
    return true;
  }
  Tracked* known = tracked_.find(object);
  if (known == nullptr) {
    Tracked& tracked = tracked_.add(object, Tracked::Kind::source);
    tracked.source = source;
    return true;
  }
  if (known->source == source) return true;
  if (known->kind == Tracked::Kind::constant) {
    source->checks.identical = Ref::borrow(object);
    return true;
  }
  if (known->kind != Tracked::Kind::source) return false;  // made here, found outside
  if (source->id > known->source->id) {
    source->checks.same_as = known->source;
  } else {
    known->source->checks.same_as = source;
  }
  return true;
}

bool Recorder::touch(PyObject* object) {
  if (is_scalar(object)) return true;
  Tracked* tracked = tracked_.find(object);
  if (tracked == nullptr) return false;
  if (tracked->is_touched || tracked->kind != Tracked::Kind::source) return true;
  // What such a tensor says of itself is computed by Python code.
  if (is_tensor(object) && tensor_of(object).unsafeGetTensorImpl()->is_python_dispatch()) {
    return false;
  }
  tracked->is_touched = true;
  Checks& checks = tracked->source->checks;
  if (is_identity_object(object)) {
    checks.identical = Ref::borrow(object);
    tracked->kind = Tracked::Kind::constant;
    return true;
  }
  if (is_device(object)) {
    checks.value = Ref::borrow(object);
    return true;
  }
  checks.type = Ref::borrow(Py_TYPE(object));
  if (is_value_of_subclass(object)) checks.value = Ref::borrow(object);
  if (is_tensor(object)) checks.tensor.emplace(tensor_of(object));
  return true;
}

void Recorder::read(const Operand& operand) {
  if (operand.origin != nullptr && is_recording()) {
    operand.origin->checks.value = Ref::borrow(operand.object);
  }
}

Ref values_of_slots(PyObject* object) {
  const Ref slots = slots_of(Py_TYPE(object));
  Ref values = Ref::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(slots.get()); ++i) {
    PyObject* descriptor = PyList_GET_ITEM(slots.get(), i);
    const Ref value = Ref::steal(
        Py_TYPE(descriptor)
            ->tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(Py_TYPE(object))));
    if (!value) {
      PyErr_Clear();  // unset
      continue;
    }
    PyList_Append(values.get(), descriptor);
    PyList_Append(values.get(), value.get());
  }
  return values;
}

void Recorder::save_for_rollback(PyObject* object, bool always) {
  if (inlined_.empty() && !always) return;  // a break forgets whole instructions of the root only
  for (const Saved& saved : saved_) {
    if (saved.object == object) return;
  }
  Ref contents;
  if (PyList_Check(object) || PyAnySet_Check(object) || Py_TYPE(object) == deque_type()) {
    contents = Ref::steal(PySequence_List(object));
  } else if (has_object_layout(Py_TYPE(object))) {
    contents = values_of_slots(object);
  } else if (PyDict_Check(object)) {
    contents = copy_in_order(object);
  } else if (PyCell_Check(object)) {
    contents = Ref::borrow(PyCell_GET(object) == nullptr ? Py_NotImplemented : PyCell_GET(object));
  } else if (PyIter_Check(object)) {
    contents = Ref::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
    PyErr_Clear();
    saved_.push_back({object, contents});
    // The iterators that it advances are saved with it.
    PyObject* args =
        contents && PyTuple_Check(contents.get()) && PyTuple_GET_SIZE(contents.get()) > 1
            ? PyTuple_GET_ITEM(contents.get(), 1)
            : nullptr;
    if (args == nullptr || !PyTuple_Check(args)) return;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* part = PyTuple_GET_ITEM(args, i);
      if (is_builtin_iterator(part) && PyIter_Check(part)) save_for_rollback(part, true);
    }
    return;
  }
  saved_.push_back({object, std::move(contents)});
}

bool Recorder::is_local(PyObject* object) {
  if (is_scalar(object) || tracked_.find(object) != nullptr) return true;
  if (is_identity_object(object)) {
    is_constant(object);  // types, dtypes, builtin functions: the same whenever this runs
    return true;
  }
  const auto items_are_known = [&](PyObject* const* items, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!is_local(items[i])) return false;
    }
    return true;
  };
  bool known = false;
  if (PyTuple_Check(object)) {
    known = items_are_known(&PyTuple_GET_ITEM(object, 0), PyTuple_GET_SIZE(object));
  } else if (PyList_CheckExact(object)) {
    known = PyList_GET_SIZE(object) == 0 ||
            items_are_known(&PyList_GET_ITEM(object, 0), PyList_GET_SIZE(object));
  } else if (is_builtin_dict(object)) {
    known = true;
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (known && PyDict_Next(object, &position, &key, &value) != 0) {
      known = is_local(key) && is_local(value) && use_as_key(key);
    }
  } else if (PyAnySet_CheckExact(object)) {
    known = true;
    PyObject* item = nullptr;
    Py_ssize_t position = 0;
    Py_hash_t hash = 0;
    while (known && _PySet_NextEntry(object, &position, &item, &hash) != 0) {
      known = is_local(item) && use_as_key(item);
    }
  } else if (Py_TYPE(object) == deque_type()) {
    const Ref items = Ref::steal(PySequence_List(object));
    known = items_are_known(&PyList_GET_ITEM(items.get(), 0), PyList_GET_SIZE(items.get()));
  } else if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    known = is_local(slice->start) && is_local(slice->stop) && is_local(slice->step);
  } else if (PyMethod_Check(object)) {
    known = is_local(PyMethod_GET_FUNCTION(object)) && is_local(PyMethod_GET_SELF(object));
  } else {
    known = Py_TYPE(object) == &PyRange_Type || is_builtin_iterator(object) || is_device(object);
  }
  if (!known) return false;
  tracked_.add(object, Tracked::Kind::local).is_known = true;
  return true;
}

void Recorder::track_local(PyObject* object) {
  if (tracked_.find(object) != nullptr) return;
  tracked_.add(object, Tracked::Kind::local).is_known = true;
}

bool Recorder::has_only_values(PyObject* container, int depth) {
  if (is_scalar(container)) return true;
  if (depth > 20 || (!PyList_Check(container) && !PyTuple_Check(container)) ||
      !know_contents(container)) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i) {
    if (!has_only_values(PySequence_Fast_GET_ITEM(container, i), depth + 1)) return false;
  }
  return true;
}

PyObject* Recorder::made(Activation& a, PyObject* object, const char* what) {
  if (object == nullptr || !is_recording() || is_local(object)) return object;
  if (!stop(a, std::string(what) + " gave an object of type '" + Py_TYPE(object)->tp_name +
                   "', which cannot be part of a graph")) {
    Py_DECREF(object);
    return nullptr;
  }
  return object;
}

PyObject* Recorder::watched(Activation& a, std::size_t before, PyObject* result) {
  if (!is_recording() || unexplained() == before) return result;
  if (!stop(a, "an operator ran inside a call that was not expected to run any")) {
    Py_XDECREF(result);
    return nullptr;
  }
  return result;
}

PyObject* Recorder::lookup_on_type(PyTypeObject* type, PyObject* name) {
  PyObject* found = _PyType_Lookup(type, name);
  const bool is_mutable = (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0;
  if (is_mutable && !was_written_to(type, name) && looked_up_.emplace(reinterpret_cast<PyObject*>(type), name).second) {
    lookups_.push_back(
        {Ref::borrow(type), Ref::borrow(name), Ref::borrow(found), type->tp_version_tag});
  }
  return found;
}

int Recorder::is_subclass(PyTypeObject* type, PyObject* of, bool is_abstract) {
  const SuspendScope suspended(*this);  // registries are asked in Python
  const int answer = PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), of);
  const bool may_change = is_abstract || (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) == 0;
  if (answer < 0 || !may_change) return answer;
  for (const SubclassCheck& known : subclass_checks_) {
    if (known.type.get() == reinterpret_cast<PyObject*>(type) && known.of.get() == of) {
      return answer;
    }
  }
  SubclassCheck check{Ref::borrow(type), Ref::borrow(of), answer == 1, is_abstract};
  check.holds();  // notes the versions
  subclass_checks_.push_back(std::move(check));
  return answer;
}

bool Recorder::set_grad_mode(Activation&, bool enabled) {
  at::GradMode::set_enabled(enabled);
  if (enabled == grad_mode_) return true;
  grad_mode_ = enabled;
  graph::Node& node = graph_->call_function("torch._C._set_grad_enabled", {enabled});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  return true;
}

void Recorder::entered_autocast(PyObject* manager, const aten::AutocastState& before) {
  const auto inside = aten::AutocastState::current();
  graph::Node& node =
      graph_->call_function("torch.amp.autocast_mode._enter_autocast",
                            {"cpu", inside.dtype, inside.is_enabled, inside.is_cache_enabled});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  autocast_.push_back({manager, &node, before, inside});
}

void Recorder::left_autocast() {
  graph::Node& node =
      graph_->call_function("torch.amp.autocast_mode._exit_autocast", {autocast_.back().node});
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  autocast_.pop_back();
}

}  // namespace assay::capture
