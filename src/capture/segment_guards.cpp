#include "capture/segment_guards.h"

#include <algorithm>

#include "capture/arrays.h"
#include "capture/constant_objects.h"
#include "capture/guard_checks.h"
#include "capture/guard_snapshot.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// The index of the n-th cell of a function's closure.
PyObject* closure_cell(PyObject* function, Py_ssize_t index) {
  if (!PyFunction_Check(function)) return nullptr;
  PyObject* closure = reinterpret_cast<PyFunctionObject*>(function)->func_closure;
  if (closure == nullptr || index >= PyTuple_GET_SIZE(closure)) return nullptr;
  return PyTuple_GET_ITEM(closure, index);
}

PyObject* element(PyObject* sequence, Py_ssize_t index) {
  if (PyTuple_Check(sequence)) {
    return index < PyTuple_GET_SIZE(sequence) ? PyTuple_GET_ITEM(sequence, index) : nullptr;
  }
  if (Py_TYPE(sequence) == deque_type()) {
    PyObject* found = PySequence_GetItem(sequence, index);
    if (found == nullptr) PyErr_Clear();
    Py_XDECREF(found);  // the deque keeps it
    return found;
  }
  if (!PyList_Check(sequence)) return nullptr;
  return index < PyList_GET_SIZE(sequence) ? PyList_GET_ITEM(sequence, index) : nullptr;
}

bool is_handling(const Activation& activation) {
  const _PyErr_StackItem* top = _PyErr_GetTopmostException(activation.thread);
  return top->exc_value != nullptr && top->exc_value != Py_None;
}

bool is_other_number(const Checks& checks, PyObject* object) {
  return checks.value && Py_TYPE(object) == Py_TYPE(checks.value.get()) &&
         (PyLong_CheckExact(object) || PyFloat_CheckExact(object));
}

}  // namespace

bool SubclassCheck::holds() {
  static PyObject* const get_token = [] {
    const Ref module = Ref::steal(import_module("abc"));
    return PyObject_GetAttrString(module.get(), "get_cache_token");
  }();
  auto* checked = reinterpret_cast<PyTypeObject*>(type.get());
  Ref token = is_abstract ? Ref::steal(PyObject_CallNoArgs(get_token)) : Ref();
  const bool is_known =
      version != 0 && checked->tp_version_tag == version &&
      (!is_abstract || (registrations && is_equal(token.get(), registrations.get())));
  if (is_known) return true;
  const int answer = PyObject_IsSubclass(type.get(), of.get());
  if (answer < 0) PyErr_Clear();
  if ((answer == 1) != expected) return false;
  static PyObject* const any_name = PyUnicode_InternFromString("__class__");
  _PyType_Lookup(checked, any_name);  // gives it a version tag
  version = checked->tp_version_tag;
  registrations = std::move(token);
  return true;
}

SegmentGuards::SegmentGuards(const SourceTree& tree, const std::vector<bool>& needed,
                             const std::vector<std::vector<const Source*>>& distinct,
                             std::vector<TypeLookup> lookups,
                             std::vector<SubclassCheck> subclass_checks,
                             const guards::GlobalState& state, PyObject* globals)
    : lookups_(std::move(lookups)),
      subclass_checks_(std::move(subclass_checks)),
      state_(state),
      globals_(Ref::borrow(globals)) {
  const auto& sources = const_cast<SourceTree&>(tree).all();
  std::vector<bool> keep(sources.size());
  const auto keep_with_parents = [&](const Source* source) {
    for (; source != nullptr && !keep[static_cast<std::size_t>(source->id)];
         source = source->parent) {
      keep[static_cast<std::size_t>(source->id)] = true;
    }
  };
  for (const Source& source : sources) {
    if (source.checks.any() || needed[static_cast<std::size_t>(source.id)]) {
      keep_with_parents(&source);
    }
    if (source.checks.same_as != nullptr) keep_with_parents(source.checks.same_as);
  }
  for (const auto& group : distinct) {
    for (const Source* source : group) keep_with_parents(source);
  }
  step_of_.assign(sources.size(), -1);
  for (const Source& source : sources) {
    const auto id = static_cast<std::size_t>(source.id);
    if (!keep[id]) continue;
    step_of_[id] = static_cast<int>(steps_.size());
    Step& step = steps_.emplace_back();
    step.access = source.access;
    step.index = source.index;
    step.key_owner = source.key;
    step.key = source.key.get();
    step.checks = source.checks;
    step.has_checks = source.checks.any();
    step.expression = source.expression();
    if (source.parent != nullptr)
      step.parent = step_of_[static_cast<std::size_t>(source.parent->id)];
  }
  for (const Source& source : sources) {
    const int step = step_of_[static_cast<std::size_t>(source.id)];
    if (step < 0 || source.checks.same_as == nullptr) continue;
    steps_[static_cast<std::size_t>(step)].same_as = step_of(*source.checks.same_as);
  }
  for (const auto& group : distinct) {
    std::vector<int>& made = distinct_.emplace_back();
    for (const Source* source : group) made.push_back(step_of(*source));
  }
}

SegmentGuards::~SegmentGuards() = default;

int SegmentGuards::step_of(const Source& source) const {
  return step_of_[static_cast<std::size_t>(source.id)];
}

PyObject* SegmentGuards::fetch(const Step& step, const Activation& activation,
                               GuardValues& values) {
  PyObject* parent =
      step.parent < 0 ? nullptr : values.objects[static_cast<std::size_t>(step.parent)];
  if (step.parent >= 0 && parent == nullptr) return nullptr;
  switch (step.access) {
    case Access::slot:
      return activation.locals + step.index < activation.top ? activation.locals[step.index]
                                                             : nullptr;
    case Access::function:
      return reinterpret_cast<PyObject*>(activation.frame->f_func);
    case Access::constant:
      return step.key;
    case Access::closure:
      return closure_cell(parent, step.index);
    case Access::contents:
      return PyCell_Check(parent) ? PyCell_GET(parent) : nullptr;
    case Access::dict: {
      PyObject* dict = PyObject_GenericGetDict(parent, nullptr);
      if (dict == nullptr) PyErr_Clear();
      Py_XDECREF(dict);  // the object keeps it
      return dict;
    }
    case Access::item: {
      if (!PyDict_Check(parent)) return nullptr;
      const std::uint64_t version = reinterpret_cast<PyDictObject*>(parent)->ma_version_tag;
      if (version == step.version) return step.cached;
      step.cached = PyDict_GetItemWithError(parent, step.key);
      if (step.cached == nullptr) PyErr_Clear();
      step.version = version;
      return step.cached;
    }
    case Access::element:
      return element(parent, step.index);
    case Access::member: {
      const descrgetfunc get = Py_TYPE(step.key)->tp_descr_get;
      PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(parent));
      PyObject* found = get == nullptr ? nullptr : get(step.key, parent, type);
      if (found == nullptr) {
        PyErr_Clear();
        return nullptr;
      }
      values.kept.push_back(Ref::steal(found));
      return found;
    }
    case Access::receiver:
      return PyMethod_Check(parent) ? PyMethod_GET_SELF(parent) : nullptr;
    case Access::callee:
      return PyMethod_Check(parent) ? PyMethod_GET_FUNCTION(parent) : nullptr;
    case Access::referent:
      return PyWeakref_CheckRef(parent) ? PyWeakref_GET_OBJECT(parent) : nullptr;
    case Access::array: {
      Ref tensor = is_array(parent) || is_array_scalar(parent) ? tensor_of_array(parent) : Ref();
      if (!tensor) {
        PyErr_Clear();
        return nullptr;
      }
      values.kept.push_back(tensor);
      return tensor.get();
    }
    case Access::answer: {
      PyObject* const* call = &PyTuple_GET_ITEM(step.key, 0);
      const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(step.key)) - 1;
      PyObject* found = PyObject_Vectorcall(call[0], call + 1, count, nullptr);
      if (found == nullptr) {
        PyErr_Clear();
        return nullptr;
      }
      values.kept.push_back(Ref::steal(found));
      return found;
    }
  }
  return nullptr;
}

bool SegmentGuards::check(const Step& step, PyObject* object, const GuardValues& values) {
  const Checks& checks = step.checks;
  if (object == nullptr) return checks.absent || checks.may_be_unset;
  if (checks.absent) return false;
  if (checks.identical && object != checks.identical.get()) return false;
  if (checks.type && reinterpret_cast<PyObject*>(Py_TYPE(object)) != checks.type.get())
    return false;
  if (checks.value && !same_value(object, checks.value.get())) return false;
  if (checks.is_int64 && !is_int64(object)) return false;
  if (checks.length >= 0 && length_of(object) != checks.length) return false;
  if (checks.keys && !same_keys(object, checks.keys.get())) return false;
  if (checks.order && !same_order(object, checks.order.get())) return false;
  if (step.same_as >= 0 && object != values.objects[static_cast<std::size_t>(step.same_as)]) {
    return false;
  }
  if (checks.tensor && !(is_tensor(object) && checks.tensor->holds(tensor_of(object)))) {
    return false;
  }
  return !checks.function || same_function(object, checks.function.get());
}

bool SegmentGuards::lookups_hold() const {
  for (TypeLookup& lookup : lookups_) {
    auto* type = reinterpret_cast<PyTypeObject*>(lookup.type.get());
    if (type->tp_version_tag == lookup.version && lookup.version != 0) continue;
    if (_PyType_Lookup(type, lookup.name.get()) != lookup.found.get()) return false;
    lookup.version = type->tp_version_tag;
  }
  return std::ranges::all_of(subclass_checks_, [](SubclassCheck& check) { return check.holds(); });
}

bool SegmentGuards::all_distinct(const GuardValues& values) const {
  std::size_t next = 0;
  bool same_as_last = !last_distinct_.empty() || distinct_.empty();
  for (const auto& group : distinct_) {
    for (const int step : group) {
      PyObject* object = values.objects[static_cast<std::size_t>(step)];
      if (next >= last_distinct_.size() || last_distinct_[next] != object) same_as_last = false;
      ++next;
    }
  }
  if (same_as_last) return true;
  std::vector<PyObject*> seen;
  for (const auto& group : distinct_) {
    std::vector<PyObject*> sorted;
    for (const int step : group) sorted.push_back(values.objects[static_cast<std::size_t>(step)]);
    seen.insert(seen.end(), sorted.begin(), sorted.end());
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) return false;
  }
  last_distinct_ = std::move(seen);
  return true;
}

bool SegmentGuards::hold(const Activation& activation, const guards::GlobalState& state,
                         GuardValues& values) const {
  if (!surroundings_hold(activation, state)) return false;
  // Kept: a check may run Python code, which may call this function again.
  if (const std::shared_ptr<const GuardSnapshot> last = snapshot_) {
    if (last->holds(*this, activation, values)) {
      attempts_ = 0;
      return true;
    }
  }
  values.kept.clear();
  if (!hold_one_by_one(activation, values)) return false;
  // A few steps are as cheap as a snapshot. One that never holds is not made again and again.
  constexpr std::size_t kManySteps = 24;
  constexpr int kAttempts = 8;
  if (steps_.size() < kManySteps || attempts_ >= kAttempts) return true;
  ++attempts_;
  snapshot_ = std::make_shared<const GuardSnapshot>(*this, values);
  return true;
}

bool SegmentGuards::hold_one_by_one(const Activation& activation, GuardValues& values) const {
  values.objects.resize(steps_.size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    PyObject* object = fetch(step, activation, values);
    values.objects[i] = object;
    if (step.has_checks ? !check(step, object, values)
                        : object == nullptr && !step.checks.may_be_unset) {
      return false;
    }
  }
  return lookups_hold() && all_distinct(values);
}

std::string SegmentGuards::why(const Step& step, PyObject* object, const GuardValues& values,
                               const std::vector<Step>& steps) {
  const Checks& checks = step.checks;
  const std::string& name = step.expression;
  if (object == nullptr) return name + " no longer exists";
  if (checks.absent) return name + " did not exist before";
  if (checks.value && !same_value(object, checks.value.get())) {
    return name + " is " + short_repr(object) + ", was " + short_repr(checks.value.get());
  }
  if (checks.tensor && is_tensor(object) && !checks.tensor->holds(tensor_of(object))) {
    return checks.tensor->failure(tensor_of(object), name);
  }
  if (checks.type && reinterpret_cast<PyObject*>(Py_TYPE(object)) != checks.type.get()) {
    return "type(" + name + ") is " + Py_TYPE(object)->tp_name + ", was " +
           reinterpret_cast<PyTypeObject*>(checks.type.get())->tp_name;
  }
  if (checks.is_int64 && !is_int64(object)) return name + " has more than 64 bits";
  if (checks.length >= 0 && length_of(object) != checks.length) {
    return "len(" + name + ") is " + std::to_string(length_of(object)) + ", was " +
           std::to_string(checks.length);
  }
  if (checks.keys && !same_keys(object, checks.keys.get())) return name + " has other keys";
  if (checks.order && !same_order(object, checks.order.get())) return name + " has another order";
  if (step.same_as >= 0 && object != values.objects[static_cast<std::size_t>(step.same_as)]) {
    return name + " is no longer the same object as " +
           steps[static_cast<std::size_t>(step.same_as)].expression;
  }
  if (checks.function) return name + " is another function";
  return name + " is another object";
}

bool SegmentGuards::surroundings_hold(const Activation& activation,
                                      const guards::GlobalState& state) const {
  return state == state_ && activation.frame->f_globals == globals_.get() &&
         !(no_exception_ && is_handling(activation));
}

std::optional<std::size_t> SegmentGuards::first_misfit(const Activation& activation,
                                                       GuardValues& values, Besides besides) const {
  values.objects.resize(steps_.size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    PyObject* object = fetch(step, activation, values);
    values.objects[i] = object;
    const bool holds = step.has_checks ? check(step, object, values)
                                       : object != nullptr || step.checks.may_be_unset;
    if (holds) continue;
    if (!is_besides(besides, step, object)) return i;
  }
  return std::nullopt;
}

bool SegmentGuards::is_besides(Besides besides, const Step& step, PyObject* object) {
  if (besides == Besides::nothing || object == nullptr) return false;
  if (step.checks.tensor) {
    return is_tensor(object) && step.checks.tensor->has_other_sizes(tensor_of(object));
  }
  return besides == Besides::sizes_and_numbers && is_other_number(step.checks, object);
}

bool SegmentGuards::hold_but_for(Besides besides, const Activation& activation,
                                 const guards::GlobalState& state) const {
  GuardValues values;
  return surroundings_hold(activation, state) && !first_misfit(activation, values, besides) &&
         lookups_hold() && all_distinct(values);
}

void SegmentGuards::add_others(const Activation& activation, OpenSources& open) const {
  GuardValues values;
  first_misfit(activation, values, Besides::sizes_and_numbers);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    PyObject* object = values.objects[i];
    if (object == nullptr || (step.has_checks && check(step, object, values))) continue;
    if (step.checks.tensor && is_tensor(object)) {
      open.sizes[step.expression] |= step.checks.tensor->other_dimensions(tensor_of(object));
    } else if (is_other_number(step.checks, object)) {
      open.numbers.insert(step.expression);
    }
  }
}

GuardFailure SegmentGuards::failure(const Activation& activation,
                                    const guards::GlobalState& state) const {
  if (!(state == state_)) return {state_.difference(state)};
  if (activation.frame->f_globals != globals_.get())
    return {"the function's globals are another dict"};
  if (no_exception_ && is_handling(activation)) return {"an exception is being handled"};
  GuardValues values;
  if (const auto misfit = first_misfit(activation, values, Besides::nothing)) {
    const Step& step = steps_[*misfit];
    PyObject* object = values.objects[*misfit];
    return {why(step, object, values, steps_),
            object != nullptr && step.checks.tensor && is_tensor(object)};
  }
  for (const TypeLookup& lookup : lookups_) {
    auto* type = reinterpret_cast<PyTypeObject*>(lookup.type.get());
    if (_PyType_Lookup(type, lookup.name.get()) != lookup.found.get()) {
      return {std::string(type->tp_name) + "." + to_string(lookup.name.get()) + " has changed"};
    }
  }
  for (SubclassCheck& check : subclass_checks_) {
    if (check.holds()) continue;
    const auto name = [](const Ref& type) {
      return std::string(reinterpret_cast<PyTypeObject*>(type.get())->tp_name);
    };
    return {name(check.type) + (check.expected ? " is no longer" : " is now") + " a subclass of " +
            name(check.of)};
  }
  return {all_distinct(values) ? "" : "two arguments are the same object now"};
}

std::vector<std::string> SegmentGuards::describe() const {
  std::vector<std::string> lines;
  for (const Step& step : steps_) {
    const Checks& checks = step.checks;
    const std::string& name = step.expression;
    if (checks.absent) lines.push_back("not hasattr: " + name);
    if (checks.identical) lines.push_back(name + " is " + short_repr(checks.identical.get()));
    if (checks.value) lines.push_back(name + " == " + short_repr(checks.value.get()));
    if (checks.tensor) {
      lines.push_back("check_tensor(" + name + ")");
    } else if (checks.type) {
      lines.push_back("type(" + name + ") is " +
                      reinterpret_cast<PyTypeObject*>(checks.type.get())->tp_name);
    }
    if (checks.length >= 0)
      lines.push_back("len(" + name + ") == " + std::to_string(checks.length));
    if (checks.keys) lines.push_back("keys(" + name + ")");
    if (checks.order) lines.push_back("order(" + name + ")");
    if (step.same_as >= 0) {
      lines.push_back(name + " is " + steps_[static_cast<std::size_t>(step.same_as)].expression);
    }
    if (checks.function) lines.push_back("code(" + name + ")");
  }
  for (const TypeLookup& lookup : lookups_) {
    lines.push_back(std::string("lookup(") +
                    reinterpret_cast<PyTypeObject*>(lookup.type.get())->tp_name + "." +
                    to_string(lookup.name.get()) + ")");
  }
  return lines;
}

}  // namespace assay::capture
