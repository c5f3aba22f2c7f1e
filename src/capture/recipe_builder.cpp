#include "capture/recipe_builder.h"

#include <algorithm>

#include "capture/arrays.h"
#include "capture/code_facts.h"
#include "capture/constant_objects.h"
#include "capture/dict_order.h"
#include "capture/generators.h"
#include "capture/models.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// An object whose state is its __dict__: object.__new__ makes another one.
bool is_plain_instance(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  const bool is_class = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && type->tp_itemsize == 0;
  return type == &PyBaseObject_Type || (is_class && has_object_layout(type));
}

}  // namespace

int RecipeBuilder::failed(std::string what) {
  if (problem_.empty()) problem_ = std::move(what);
  return kFailed;
}

int RecipeBuilder::add(Make make, PyObject* object, std::vector<int> parts, int attributes) {
  segment_.recipes.push_back({make, 0, Ref::borrow(object), std::move(parts), attributes});
  return static_cast<int>(segment_.recipes.size()) - 1;
}

int RecipeBuilder::constant(PyObject* object) { return add(Make::constant, object, {}); }

int RecipeBuilder::from_source(Source* source) {
  const auto [known, is_new] = sources_.try_emplace(source, 0);
  if (is_new) {
    known->second = add(Make::source, nullptr, {});
    // Source ids become guard steps when the guards are there.
    segment_.recipes.back().index = source->id;
  }
  return known->second;
}

PyObject* RecipeBuilder::saved_contents(PyObject* object) const {
  for (const auto& saved : recorder_.saved_) {
    if (saved.object == object) return saved.contents.get();
  }
  return nullptr;
}

int RecipeBuilder::recipe_at(PyObject* object, Source* origin) {
  if (object == nullptr) return kNone;
  return origin != nullptr ? from_source(origin) : recipe(object);
}

int RecipeBuilder::number_recipe(graph::Node& node) {
  if (node.op() == graph::Op::placeholder) {  // a number from outside
    for (const auto& input : recorder_.inputs_) {
      if (input.placeholder == &node) return from_source(input.source);
    }
  }
  auto known = std::ranges::find(numbers_, &node);
  if (known == numbers_.end()) known = numbers_.insert(numbers_.end(), &node);
  const int made = add(Make::number, nullptr, {});
  segment_.recipes.back().index = static_cast<int>(known - numbers_.begin());
  return made;
}

int RecipeBuilder::recipe(PyObject* object) {
  if (graph::Node* number = recorder_.size_numbers_.find(object)) {
    const auto [known, is_new] = made_.try_emplace(object, 0);
    if (is_new) known->second = number_recipe(*number);
    return known->second;
  }
  if (!recorder_.size_numbers_.empty() && Py_TYPE(object) == size_type()) {
    std::vector<int> parts;
    if (!add_items(&PyTuple_GET_ITEM(object, 0), PyTuple_GET_SIZE(object), parts)) return kFailed;
    return add(Make::tuple, reinterpret_cast<PyObject*>(size_type()), std::move(parts));
  }
  if (is_scalar(object)) {
    const auto [known, is_new] = made_.try_emplace(object, 0);
    if (is_new) known->second = constant(object);
    return known->second;
  }
  if (const auto known = made_.find(object); known != made_.end()) return known->second;
  Tracked* tracked = recorder_.find(object);
  if (tracked == nullptr) {
    return failed(std::string("an object of type '") + Py_TYPE(object)->tp_name +
                  "' is still in use");
  }
  int made = kFailed;
  switch (tracked->kind) {
    case Tracked::Kind::source:
      made = from_source(tracked->source);
      break;
    case Tracked::Kind::constant:
      made = constant(object);
      break;
    case Tracked::Kind::node: {
      const auto known = std::ranges::find(outputs_, tracked->node);
      const auto index = static_cast<int>(known - outputs_.begin());
      if (known == outputs_.end()) outputs_.push_back(tracked->node);
      const TensorForm form = form_of(object);
      // What was noted on the tensor.
      PyObject* notes = tracked->has_known_dict ? recorder_.dict_of(object) : nullptr;
      const bool has_notes = notes != nullptr && PyDict_GET_SIZE(notes) > 0;
      const int attributes = has_notes ? recipe(notes) : kNone;
      if (attributes == kFailed) return kFailed;
      const Make make = form == TensorForm::tensor  ? Make::output
                        : form == TensorForm::array ? Make::array
                                                    : Make::scalar;
      made = add(make, nullptr, {}, attributes);
      segment_.recipes.back().index = index;
      break;
    }
    case Tracked::Kind::local:
      if (const auto waiting = in_progress_.find(object); waiting != in_progress_.end()) {
        if (waiting->second == kNone) waiting->second = allocate(object);
        return waiting->second;
      }
      in_progress_[object] = kNone;
      made = make_local(object);
      in_progress_.erase(object);
      break;
  }
  if (made >= 0) made_[object] = made;
  return made;
}

bool RecipeBuilder::add_items(PyObject* const* items, Py_ssize_t count, std::vector<int>& parts) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    const int made = recipe(items[i]);
    if (made < 0) return false;
    parts.push_back(made);
  }
  return true;
}

int RecipeBuilder::make_function(PyObject* object) {
  const auto* function = reinterpret_cast<PyFunctionObject*>(object);
  std::vector<int> parts;
  for (PyObject* part : {function->func_defaults, function->func_kwdefaults, function->func_closure,
                         function->func_dict}) {
    const int made = part == nullptr ? kNone : recipe(part);
    if (made == kFailed) return kFailed;
    parts.push_back(made);
  }
  const int allocated = in_progress_[object];
  if (allocated >= 0) {
    segment_.recipes[static_cast<std::size_t>(allocated)].parts = std::move(parts);
    return allocated;
  }
  return add(Make::function, like_of(object), std::move(parts));
}

PyObject* RecipeBuilder::like_of(PyObject* function) const {
  PyObject* saved = saved_contents(function);
  return saved != nullptr ? saved : function;
}

int RecipeBuilder::allocate(PyObject* object) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (PyList_Check(object)) return add(Make::list, type, {});
  if (PyDict_Check(object)) return add(Make::dict, type, {});
  if (PyCell_Check(object)) return add(Make::cell, nullptr, {});
  if (PyFunction_Check(object)) return add(Make::function, like_of(object), {});
  if (is_plain_instance(object)) return add(Make::instance, type, {});
  return failed(std::string("an object of type '") + Py_TYPE(object)->tp_name +
                "' contains itself");
}

int RecipeBuilder::complete(PyObject* object, Make make, std::vector<int> parts, int attributes) {
  const int allocated = in_progress_[object];
  if (allocated < 0) {
    PyObject* type = make == Make::cell ? nullptr : reinterpret_cast<PyObject*>(Py_TYPE(object));
    return add(make, type, std::move(parts), attributes);
  }
  Recipe& recipe = segment_.recipes[static_cast<std::size_t>(allocated)];
  recipe.parts = std::move(parts);
  recipe.attributes = attributes;
  return allocated;
}

int RecipeBuilder::attributes_of(PyObject* object) {
  PyObject* dict = recorder_.dict_of(object);
  return dict == nullptr ? kNone : recipe(dict);
}

int RecipeBuilder::factory_of(PyObject* object) {
  const Ref factory = Ref::steal(PyObject_GetAttrString(object, "default_factory"));
  return factory ? recipe(factory.get()) : failed("a defaultdict is still in use");
}

bool RecipeBuilder::add_slots(PyObject* object, std::vector<int>& parts) {
  PyObject* saved = saved_contents(object);
  const Ref values = saved != nullptr ? Ref::borrow(saved) : values_of_slots(object);
  kept_.push_back(values);
  for (Py_ssize_t i = 0; i + 1 < PyList_GET_SIZE(values.get()); i += 2) {
    recorder_.is_constant(PyList_GET_ITEM(values.get(), i));
    const int value = recipe(PyList_GET_ITEM(values.get(), i + 1));
    if (value < 0) return false;
    parts.push_back(recipe(PyList_GET_ITEM(values.get(), i)));
    parts.push_back(value);
  }
  return true;
}

int RecipeBuilder::make_local(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* type_object = reinterpret_cast<PyObject*>(type);
  PyObject* saved = saved_contents(object);
  std::vector<int> parts;
  if (PyTuple_Check(object)) {
    if (!add_items(&PyTuple_GET_ITEM(object, 0), PyTuple_GET_SIZE(object), parts)) return kFailed;
    const int attributes = type == &PyTuple_Type ? kNone : attributes_of(object);
    if (attributes == kFailed) return kFailed;
    return add(Make::tuple, type_object, std::move(parts), attributes);
  }
  if (PyList_Check(object)) {
    PyObject* contents = saved != nullptr ? saved : object;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(contents); ++i) {
      const int part = recipe(PyList_GET_ITEM(contents, i));
      if (part < 0) return kFailed;
      parts.push_back(part);
    }
    const int attributes = type == &PyList_Type ? kNone : attributes_of(object);
    if (attributes == kFailed) return kFailed;
    return complete(object, Make::list, std::move(parts), attributes);
  }
  if (PyDict_Check(object)) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    const Ref items = saved != nullptr ? Ref::borrow(saved) : copy_in_order(object);
    if (!items) {
      PyErr_Clear();
      return failed("a dict cannot be copied");
    }
    kept_.push_back(items);
    while (PyDict_Next(items.get(), &position, &key, &value) != 0) {
      const int key_part = recipe(key);
      const int value_part = key_part < 0 ? kFailed : recipe(value);
      if (value_part < 0) return kFailed;
      parts.push_back(key_part);
      parts.push_back(value_part);
    }
    const int attributes = is_builtin_dict(object) ? kNone : attributes_of(object);
    if (attributes == kFailed) return kFailed;
    const int factory = type == defaultdict_type() ? factory_of(object) : kNone;
    if (factory == kFailed) return kFailed;
    const int made = complete(object, Make::dict, std::move(parts), attributes);
    segment_.recipes[static_cast<std::size_t>(made)].factory = factory;
    return made;
  }
  if (PyAnySet_Check(object)) {
    const Ref items = saved != nullptr ? Ref::borrow(saved) : Ref::steal(PySequence_List(object));
    kept_.push_back(items);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
      const int part = recipe(PyList_GET_ITEM(items.get(), i));
      if (part < 0) return kFailed;
      parts.push_back(part);
    }
    const int attributes = PyAnySet_CheckExact(object) ? kNone : attributes_of(object);
    if (attributes == kFailed) return kFailed;
    return add(Make::set, type_object, std::move(parts), attributes);
  }
  if (type == deque_type()) {
    const Ref items = saved != nullptr ? Ref::borrow(saved) : Ref::steal(PySequence_List(object));
    const Ref maximum = Ref::steal(PyObject_GetAttrString(object, "maxlen"));
    kept_.insert(kept_.end(), {items, maximum});
    parts.push_back(recipe(maximum.get()));
    if (!add_items(&PyList_GET_ITEM(items.get(), 0), PyList_GET_SIZE(items.get()), parts)) {
      return kFailed;
    }
    return add(Make::deque, nullptr, std::move(parts));
  }
  if (type == partial_type()) {
    for (const char* name : {"func", "args", "keywords"}) {
      const Ref part = Ref::steal(PyObject_GetAttrString(object, name));
      const int made = part ? recipe(part.get()) : kFailed;
      if (made < 0) return failed("a functools.partial is still in use");
      parts.push_back(made);
    }
    return add(Make::partial, type_object, std::move(parts));
  }
  if (is_operator_getter(object)) return make_iterator(object);
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    PyObject* bounds[] = {slice->start, slice->stop, slice->step};
    if (!add_items(bounds, 3, parts)) return kFailed;
    return add(Make::slice, nullptr, std::move(parts));
  }
  if (PyCell_Check(object)) {
    PyObject* contents = saved != nullptr ? saved : PyCell_GET(object);
    if (contents == Py_NotImplemented && saved != nullptr) contents = nullptr;  // it was empty
    if (contents != nullptr) {
      const int part = recipe(contents);
      if (part < 0) return kFailed;
      parts.push_back(part);
    }
    return complete(object, Make::cell, std::move(parts), kNone);
  }
  if (PyMethod_Check(object)) {
    PyObject* pair[] = {PyMethod_GET_FUNCTION(object), PyMethod_GET_SELF(object)};
    if (!add_items(pair, 2, parts)) return kFailed;
    return add(Make::method, nullptr, std::move(parts));
  }
  if (PyFunction_Check(object)) return make_function(object);
  if (PyCFunction_Check(object)) {
    const int self = recipe(PyCFunction_GET_SELF(object));
    if (self < 0) return kFailed;
    const Ref name = Ref::steal(
        PyUnicode_InternFromString(reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name));
    return add(Make::builtin, name.get(), {self});
  }
  if (PyObject* mapping = mapping_of_proxy(object)) {
    const int part = recipe(mapping);
    if (part < 0) return kFailed;
    return add(Make::call, nullptr, {constant(type_object), part});
  }
  if (type == &PyRange_Type || is_device(object)) return constant(object);
  if (PyGen_CheckExact(object)) return make_generator(object);
  if (PyExceptionInstance_Check(object)) return make_exception(object);
  if (is_builtin_iterator(object)) return make_iterator(object);
  if (is_plain_instance(object)) {
    const int attributes = attributes_of(object);
    if (attributes == kFailed || !add_slots(object, parts)) return kFailed;
    return complete(object, Make::instance, std::move(parts), attributes);
  }
  return failed(std::string("an object of type '") + type->tp_name + "' is still in use");
}

bool RecipeBuilder::build_slots() {
  Activation& root = *recorder_.root_;
  const std::vector<bool>& live = live_locals(root.code, segment_.end);
  const auto variables = static_cast<std::size_t>(root.code->co_nlocalsplus);
  const auto count = static_cast<std::size_t>(root.top - root.locals);
  segment_.stack_depth = root.stack_depth();
  for (std::size_t i = 0; i < count; ++i) {
    PyObject* now = root.locals[i];
    Source* origin = root.origins[i];
    PyObject* before = i < recorder_.initial_slots_.size() ? recorder_.initial_slots_[i] : nullptr;
    const bool existed = i < recorder_.initial_slots_.size();
    if (existed && now == before &&
        (now == nullptr || !is_scalar(now) || origin == recorder_.initial_origins_[i])) {
      // A source object that stayed where it was; anything else here has been replaced by itself.
      Tracked* tracked = now == nullptr ? nullptr : recorder_.find(now);
      if (now == nullptr || is_scalar(now) || (tracked != nullptr && tracked->source != nullptr)) {
        continue;
      }
    }
    if (i < variables && !live[i]) {
      if (now != nullptr || before != nullptr) {
        segment_.slots.push_back({static_cast<int>(i), kNone});
      }
      continue;
    }
    const int made = recipe_at(now, origin);
    if (made == kFailed) return false;
    segment_.slots.push_back({static_cast<int>(i), made});
  }
  return true;
}

bool RecipeBuilder::build_effects() {
  for (const auto& effect : recorder_.effects_) {
    Effect made{effect.kind, kNone, kNone, kNone};
    for (const auto& [object, place] :
         {std::pair{&effect.target, &made.target}, std::pair{&effect.key, &made.key},
          std::pair{&effect.value, &made.value}}) {
      if (!*object) continue;
      *place = recipe(object->get());
      if (*place == kFailed) return false;
    }
    if (!effect.line.empty()) {
      const Tracked* target = recorder_.find(effect.target.get());
      const bool has_name = target != nullptr && target->source != nullptr;
      made.description = describe_effect(made.kind, has_name ? target->source->expression() : "",
                                         effect.key.get(), effect.line);
    }
    segment_.effects.push_back(std::move(made));
  }
  if (recorder_.grad_mode_ != recorder_.initial_grad_mode_) {
    Effect mode{Effect::Kind::set_grad_mode, kNone, kNone, kNone};
    mode.value = constant(recorder_.grad_mode_ ? Py_True : Py_False);
    segment_.effects.push_back(mode);
  }
  return true;
}

bool RecipeBuilder::build(bool is_return) {
  if (is_return) {
    Activation& root = *recorder_.root_;
    PyObject* value = root.top[-1];
    segment_.result = recipe_at(value, root.origins[root.top - 1 - root.locals]);
    if (segment_.result == kFailed) return false;
  } else {
    if (recorder_.handling_ > 0) {
      failed("an exception is being handled");
      return false;
    }
    if (!build_slots()) return false;
  }
  return build_effects();
}

}  // namespace assay::capture
