// Recipes of generators, exceptions and iterators.
#include "capture/code_facts.h"
#include "capture/constant_objects.h"
#include "capture/generators.h"
#include "capture/recipe_builder.h"

namespace assay::capture {

int RecipeBuilder::make_generator(PyObject* object) {
  PyObject* saved = saved_contents(object);
  const Ref state = saved != nullptr ? Ref::borrow(saved) : state_of(object);
  if (!state) return failed("a generator is still in use that handles an exception");
  kept_.push_back(state);
  const int place = static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(state.get(), 1)));
  PyObject* function = PyTuple_GET_ITEM(state.get(), 0);
  std::vector<int> parts;
  if (place == kEnded) {
    const int made = add(Make::generator, PyTuple_GET_ITEM(state.get(), 2), {});
    segment_.recipes.back().index = place;
    return made;
  }
  parts.push_back(recipe(function));
  if (parts.back() < 0) return kFailed;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  const bool is_started = place != kNotStarted;
  const std::vector<bool>* live = is_started ? &live_locals(code, place + 1) : nullptr;
  const auto variables = static_cast<std::size_t>(code->co_nlocalsplus);
  for (Py_ssize_t i = 2; i < PyTuple_GET_SIZE(state.get()); ++i) {
    PyObject* value = PyTuple_GET_ITEM(state.get(), i);
    const auto slot = static_cast<std::size_t>(i - 2);
    const bool is_dead = live != nullptr && slot < variables && !(*live)[slot];
    const int made = value == missing_value() || is_dead ? kNone : recipe(value);
    if (made == kFailed) return kFailed;
    parts.push_back(made);
  }
  const int made = add(Make::generator, nullptr, std::move(parts));
  segment_.recipes.back().index = place;
  return made;
}

// One that has not been raised: its class adds nothing to what BaseException keeps.
int RecipeBuilder::make_exception(PyObject* object) {
  const auto* exception = reinterpret_cast<PyBaseExceptionObject*>(object);
  const auto* base = Py_TYPE(object);
  while ((base->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) base = base->tp_base;
  const auto* root = reinterpret_cast<PyTypeObject*>(PyExc_BaseException);
  const Ref slots = slots_of(Py_TYPE(object));
  if (base->tp_basicsize != root->tp_basicsize || PyList_GET_SIZE(slots.get()) != 0 ||
      exception->traceback != nullptr || exception->context != nullptr ||
      exception->cause != nullptr || exception->suppress_context != 0) {
    return failed(std::string("an object of type '") + Py_TYPE(object)->tp_name +
                  "' is still in use");
  }
  std::vector<int> parts;
  if (!add_items(&PyTuple_GET_ITEM(exception->args, 0), PyTuple_GET_SIZE(exception->args), parts)) {
    return kFailed;
  }
  const int attributes = exception->dict == nullptr ? kNone : attributes_of(object);
  if (attributes == kFailed) return kFailed;
  return add(Make::exception, reinterpret_cast<PyObject*>(Py_TYPE(object)), std::move(parts),
             attributes);
}

int RecipeBuilder::make_iterator(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyObject* viewed = dict_of_view(object)) {
    const char* name = type == &PyDictKeys_Type || type == &PyODictKeys_Type       ? "keys"
                       : type == &PyDictValues_Type || type == &PyODictValues_Type ? "values"
                                                                                   : "items";
    const int dict = recipe(viewed);
    if (dict < 0) return kFailed;
    const Ref text = Ref::steal(PyUnicode_InternFromString(name));
    const int method = add(Make::builtin, text.get(), {dict});
    return add(Make::call, nullptr, {method});
  }
  PyObject* saved = saved_contents(object);
  Ref reduced = saved != nullptr ? Ref::borrow(saved)
                                 : Ref::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  if (!reduced || !PyTuple_Check(reduced.get()) || PyTuple_GET_SIZE(reduced.get()) < 2) {
    PyErr_Clear();
    return failed(std::string("a ") + type->tp_name + " is still in use");
  }
  kept_.push_back(reduced);
  std::vector<int> parts;
  recorder_.is_constant(PyTuple_GET_ITEM(reduced.get(), 0));
  parts.push_back(recipe(PyTuple_GET_ITEM(reduced.get(), 0)));
  PyObject* args = PyTuple_GET_ITEM(reduced.get(), 1);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* part = PyTuple_GET_ITEM(args, i);
    if (!recorder_.is_local(part)) {
      return failed(std::string("a ") + type->tp_name + " is still in use");
    }
    parts.push_back(recipe(part));
  }
  if (std::ranges::any_of(parts, [](int part) { return part < 0; })) return kFailed;
  PyObject* state =
      PyTuple_GET_SIZE(reduced.get()) > 2 ? PyTuple_GET_ITEM(reduced.get(), 2) : nullptr;
  if (state == Py_None) state = nullptr;
  if (state != nullptr && !is_scalar(state)) {
    return failed(std::string("a ") + type->tp_name + " is still in use");
  }
  return add(Make::call, state, std::move(parts));
}

}  // namespace assay::capture
