#include "capture/recipe.h"

#include <algorithm>

#include "capture/arrays.h"
#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/generators.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

class Cook {
 public:
  Cook(const Recipes& recipes, const GuardValues& values, std::span<const c10::IValue> outputs,
       std::span<const std::int64_t> numbers)
      : recipes_(recipes),
        values_(values),
        outputs_(outputs),
        numbers_(numbers),
        made_(recipes.size()) {}

  std::vector<Ref> run() {
    // What contains itself is made empty, and filled when all its parts are there.
    std::vector<std::size_t> later;
    for (std::size_t i = 0; i < recipes_.size(); ++i) {
      made_[i] = make(recipes_[i]);
      if (has_parts_before(recipes_[i], static_cast<int>(i))) {
        fill(recipes_[i], made_[i].get());
      } else {
        later.push_back(i);
      }
    }
    for (const std::size_t i : later) fill(recipes_[i], made_[i].get());
    return std::move(made_);
  }

 private:
  static bool has_parts_before(const Recipe& recipe, int index) {
    if (recipe.attributes > index || recipe.factory > index) return false;
    return std::ranges::all_of(recipe.parts, [&](int part) { return part < index; });
  }
  PyObject* part(const Recipe& recipe, std::size_t index) const {
    return made_[static_cast<std::size_t>(recipe.parts[index])].get();
  }
  // For parts that may be missing: -1.
  PyObject* optional_part(const Recipe& recipe, std::size_t index) const {
    return recipe.parts[index] < 0 ? nullptr : part(recipe, index);
  }

  static Ref checked(PyObject* object) {
    if (object == nullptr) throw PythonError{};
    return Ref::steal(object);
  }
  static void check(int result) {
    if (result < 0) throw PythonError{};
  }

  Ref tuple_of(const Recipe& recipe, std::size_t first = 0) const {
    const auto count = static_cast<Py_ssize_t>(recipe.parts.size() - first);
    Ref tuple = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = part(recipe, first + static_cast<std::size_t>(i));
      if (item == nullptr) throw PythonError{};  // contains itself: the builder does not allow it
      PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(item));
    }
    return tuple;
  }

  static PyTypeObject* type_of(const Recipe& recipe) {
    return reinterpret_cast<PyTypeObject*>(recipe.object.get());
  }

  // An empty object of `type`, a Python subclass of the builtin type `base`.
  static Ref empty_instance(PyTypeObject* base, PyTypeObject* type) {
    const Ref no_arguments = checked(PyTuple_New(0));
    return checked(base->tp_new(type, no_arguments.get(), nullptr));
  }

  Ref make_tuple(const Recipe& recipe) const {
    Ref items = tuple_of(recipe);
    PyTypeObject* type = type_of(recipe);
    if (type == &PyTuple_Type) return items;
    const Ref arguments = checked(PyTuple_Pack(1, items.get()));
    // namedtuple's __new__ takes the fields one by one; tuple's own takes the items.
    const newfunc create = is_struct_sequence(type) ? type->tp_new : PyTuple_Type.tp_new;
    return checked(create(type, arguments.get(), nullptr));
  }

  Ref make_function(const Recipe& recipe) const {
    const auto* like = reinterpret_cast<PyFunctionObject*>(recipe.object.get());
    Ref made = checked(
        PyFunction_NewWithQualName(like->func_code, like->func_globals, like->func_qualname));
    const auto set = [](PyObject*& field, PyObject* value) {
      Py_XINCREF(value);
      Py_XSETREF(field, value);
    };
    auto* function = reinterpret_cast<PyFunctionObject*>(made.get());
    set(function->func_name, like->func_name);
    if (PyObject* annotations = like->func_annotations) {
      const Ref own =
          PyDict_Check(annotations) ? checked(PyDict_Copy(annotations)) : Ref::borrow(annotations);
      set(function->func_annotations, own.get());
    }
    set(function->func_doc, like->func_doc);
    set(function->func_module, like->func_module);
    return made;
  }

  Ref make_call(const Recipe& recipe) const {
    const Ref arguments = tuple_of(recipe, 1);
    Ref made = checked(PyObject_Call(part(recipe, 0), arguments.get(), nullptr));
    if (recipe.object) {
      checked(PyObject_CallMethod(made.get(), "__setstate__", "O", recipe.object.get()));
    }
    return made;
  }

  Ref make_partial(const Recipe& recipe) const {
    Ref made = checked(PyObject_CallOneArg(recipe.object.get(), part(recipe, 0)));
    checked(PyObject_CallMethod(made.get(), "__setstate__", "((OOOO))", part(recipe, 0),
                                part(recipe, 1), part(recipe, 2), Py_None));
    return made;
  }

  Ref make(const Recipe& recipe) const {
    switch (recipe.make) {
      case Make::source:
        return Ref::borrow(values_.objects[static_cast<std::size_t>(recipe.index)]);
      case Make::constant:
        return recipe.object;
      case Make::output:
        return checked(wrap_tensor(outputs_[static_cast<std::size_t>(recipe.index)].toTensor()));
      case Make::array:
      case Make::scalar: {
        const Ref tensor =
            checked(wrap_tensor(outputs_[static_cast<std::size_t>(recipe.index)].toTensor()));
        const auto form = recipe.make == Make::array ? TensorForm::array : TensorForm::scalar;
        Ref made = array_of_tensor(tensor.get(), form);
        if (!made) throw PythonError{};
        return made;
      }
      case Make::number:
        return checked(PyLong_FromLongLong(numbers_[static_cast<std::size_t>(recipe.index)]));
      case Make::tuple:
        return make_tuple(recipe);
      case Make::list:
        return type_of(recipe) == &PyList_Type ? checked(PyList_New(0))
                                               : empty_instance(&PyList_Type, type_of(recipe));
      case Make::dict: {
        PyTypeObject* type = type_of(recipe);
        if (type == &PyDict_Type) return checked(PyDict_New());
        const bool is_ordered = PyType_IsSubtype(type, &PyODict_Type) != 0;
        return empty_instance(is_ordered ? &PyODict_Type : &PyDict_Type, type);
      }
      case Make::set: {
        PyTypeObject* type = type_of(recipe);
        if (type == &PySet_Type) return checked(PySet_New(nullptr));
        if (PyType_IsSubtype(type, &PySet_Type) != 0) return empty_instance(&PySet_Type, type);
        const Ref items = tuple_of(recipe);  // frozenset
        if (type == &PyFrozenSet_Type) return checked(PyFrozenSet_New(items.get()));
        const Ref arguments = checked(PyTuple_Pack(1, items.get()));
        return checked(PyFrozenSet_Type.tp_new(type, arguments.get(), nullptr));
      }
      case Make::deque: {
        const Ref items = tuple_of(recipe, 1);
        return checked(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(deque_type()),
                                                    items.get(), part(recipe, 0), nullptr));
      }
      case Make::slice:
        return checked(PySlice_New(part(recipe, 0), part(recipe, 1), part(recipe, 2)));
      case Make::cell:
        return checked(PyCell_New(nullptr));
      case Make::method:
        return checked(PyMethod_New(part(recipe, 0), part(recipe, 1)));
      case Make::builtin:
        return checked(PyObject_GetAttr(part(recipe, 0), recipe.object.get()));
      case Make::function:
        return make_function(recipe);
      case Make::generator:
        return checked((recipe.index == kEnded ? ended_generator(recipe.object.get())
                                               : new_generator(part(recipe, 0)))
                           .release());
      case Make::exception: {
        const Ref arguments = tuple_of(recipe);
        return checked(reinterpret_cast<PyTypeObject*>(PyExc_BaseException)
                           ->tp_new(type_of(recipe), arguments.get(), nullptr));
      }
      case Make::instance:
        return empty_instance(&PyBaseObject_Type, type_of(recipe));
      case Make::call:
        return make_call(recipe);
      case Make::partial:
        return make_partial(recipe);
    }
    throw PythonError{};
  }

  void fill(const Recipe& recipe, PyObject* object) const {
    const std::size_t count = recipe.parts.size();
    switch (recipe.make) {
      case Make::list:
        for (std::size_t i = 0; i < count; ++i) check(PyList_Append(object, part(recipe, i)));
        break;
      case Make::set:
        if (PyType_IsSubtype(type_of(recipe), &PySet_Type) == 0) break;
        for (std::size_t i = 0; i < count; ++i) check(PySet_Add(object, part(recipe, i)));
        break;
      case Make::dict:
        for (std::size_t i = 0; i + 1 < count; i += 2) {
          const bool is_ordered = PyODict_Check(object) != 0;
          check(is_ordered ? PyODict_SetItem(object, part(recipe, i), part(recipe, i + 1))
                           : PyDict_SetItem(object, part(recipe, i), part(recipe, i + 1)));
        }
        break;
      case Make::function: {
        auto* function = reinterpret_cast<PyFunctionObject*>(object);
        Py_XSETREF(function->func_defaults, Py_XNewRef(optional_part(recipe, 0)));
        Py_XSETREF(function->func_kwdefaults, Py_XNewRef(optional_part(recipe, 1)));
        Py_XSETREF(function->func_closure, Py_XNewRef(optional_part(recipe, 2)));
        Py_XSETREF(function->func_dict, Py_XNewRef(optional_part(recipe, 3)));
        break;
      }
      case Make::generator: {
        if (recipe.index == kEnded) break;
        std::vector<PyObject*> values;
        for (std::size_t i = 1; i < count; ++i) values.push_back(optional_part(recipe, i));
        let_stand_at(object, recipe.index, values.data(), static_cast<int>(values.size()));
        break;
      }
      case Make::cell:
        if (count == 1) check(PyCell_Set(object, part(recipe, 0)));
        break;
      case Make::instance:
        for (std::size_t i = 0; i + 1 < count; i += 2) {
          PyObject* descriptor = part(recipe, i);
          check(Py_TYPE(descriptor)->tp_descr_set(descriptor, object, part(recipe, i + 1)));
        }
        break;
      default:
        break;
    }
    if (recipe.factory >= 0) {
      check(PyObject_SetAttrString(object, "default_factory",
                                   made_[static_cast<std::size_t>(recipe.factory)].get()));
    }
    if (recipe.attributes < 0) return;
    PyObject* attributes = made_[static_cast<std::size_t>(recipe.attributes)].get();
    // The dict itself, so that whoever else holds it sees the same one; it is filled by now or
    // will be.
    check(PyObject_GenericSetDict(object, attributes, nullptr));
  }

  const Recipes& recipes_;
  const GuardValues& values_;
  std::span<const c10::IValue> outputs_;
  std::span<const std::int64_t> numbers_;
  std::vector<Ref> made_;
};

}  // namespace

std::vector<Ref> cook(const Recipes& recipes, const GuardValues& values,
                      std::span<const c10::IValue> outputs, std::span<const std::int64_t> numbers) {
  return Cook(recipes, values, outputs, numbers).run();
}

}  // namespace assay::capture
