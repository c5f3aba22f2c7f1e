#include "capture/source.h"

#include <cctype>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "capture/torch_types.h"

namespace assay::capture {

bool Checks::any() const {
  return absent || present || identical || type || value || length >= 0 || keys || order ||
         tensor || same_as != nullptr || function;
}

std::string to_string(PyObject* unicode) {
  const char* text = PyUnicode_Check(unicode) ? PyUnicode_AsUTF8(unicode) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();  // lone surrogates: a name that cannot be shown
    return "?";
  }
  return text;
}

std::string short_repr(PyObject* object) {
  if (!is_scalar(object)) {
    std::string shown = "<";
    shown += Py_TYPE(object)->tp_name;
    return shown += ">";
  }
  const Ref text = Ref::steal(PyObject_Repr(object));
  if (!text) {
    PyErr_Clear();
    return "?";
  }
  std::string shown = to_string(text.get());
  if (shown.size() > 60) {
    shown.resize(57);
    shown += "...";
  }
  return shown;
}

bool is_scalar(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (object == Py_None || type == &PyBool_Type || type == &PyLong_Type || type == &PyFloat_Type ||
      type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyComplex_Type ||
      object == Py_Ellipsis || object == Py_NotImplemented) {
    return true;
  }
  return type == size_type();
}

bool is_value_of_subclass(PyObject* object) {
  return !is_scalar(object) &&
         (PyLong_Check(object) || PyUnicode_Check(object) || PyFloat_Check(object) ||
          PyBytes_Check(object) || PyComplex_Check(object));
}

bool same_scalar(PyObject* left, PyObject* right) {
  if (left == right) return true;
  PyTypeObject* type = Py_TYPE(left);
  if (type != Py_TYPE(right)) return false;
  if (PyFloat_Check(left)) {
    const double a = PyFloat_AS_DOUBLE(left);
    const double b = PyFloat_AS_DOUBLE(right);
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
  if (PyComplex_Check(left)) {
    const Py_complex a = PyComplex_AsCComplex(left);
    const Py_complex b = PyComplex_AsCComplex(right);
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
  if (type == &PyBool_Type || left == Py_None) return false;  // singletons
  if (type == size_type()) {
    if (PyTuple_GET_SIZE(left) != PyTuple_GET_SIZE(right)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(left); ++i) {
      if (!same_scalar(PyTuple_GET_ITEM(left, i), PyTuple_GET_ITEM(right, i))) return false;
    }
    return true;
  }
  // As the builtin type compares, also where a subclass says otherwise: that cannot raise.
  const PyTypeObject* base = PyLong_Check(left)      ? &PyLong_Type
                             : PyUnicode_Check(left) ? &PyUnicode_Type
                             : PyBytes_Check(left)   ? &PyBytes_Type
                                                     : nullptr;
  if (base == nullptr) return false;  // singletons
  const Ref equal = Ref::steal(base->tp_richcompare(left, right, Py_EQ));
  if (!equal) PyErr_Clear();
  return equal.get() == Py_True;
}

namespace {

std::string attribute_text(const Source& source) {
  // obj.__dict__["name"] reads better as obj.name.
  const Source& dict = *source.parent;
  if (PyUnicode_Check(source.key.get())) {
    const std::string name = to_string(source.key.get());
    const std::string owner = dict.parent->expression();
    return owner.empty() ? name : owner + "." + name;
  }
  return dict.expression() + "[" + short_repr(source.key.get()) + "]";
}

std::string constant_text(PyObject* object) {
  if (PyModule_Check(object)) {
    const char* name = PyModule_GetName(object);
    if (name != nullptr) return name;
    PyErr_Clear();
  }
  if (PyType_Check(object)) return reinterpret_cast<PyTypeObject*>(object)->tp_name;
  if (PyFunction_Check(object)) {
    return to_string(reinterpret_cast<PyFunctionObject*>(object)->func_qualname);
  }
  if (PyDict_Check(object)) {
    PyObject* name = PyDict_GetItemString(object, "__name__");
    std::string shown = "globals";
    if (name != nullptr && PyUnicode_Check(name)) shown.append(" of ").append(to_string(name));
    return shown;
  }
  return short_repr(object);
}

std::string answer_text(PyObject* function_and_arguments) {
  const Ref name =
      Ref::steal(PyObject_GetAttrString(PyTuple_GET_ITEM(function_and_arguments, 0), "__name__"));
  PyErr_Clear();
  std::string text = name ? to_string(name.get()) : "?";
  text += "(";
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(function_and_arguments); ++i) {
    if (i > 1) text += ", ";
    text += short_repr(PyTuple_GET_ITEM(function_and_arguments, i));
  }
  return text + ")";
}

}  // namespace

std::string Source::expression() const {
  switch (access) {
    case Access::slot:
      return name;
    case Access::function:
      return "the function";
    case Access::constant:
      return constant_text(key.get());
    case Access::closure:
      return name.empty() ? parent->expression() + ".__closure__[" + std::to_string(index) + "]"
                          : name;
    case Access::contents:
      return parent->name.empty() ? parent->expression() + ".cell_contents" : parent->name;
    case Access::dict:
      return parent->expression() + ".__dict__";
    case Access::item:
      if (parent->access == Access::dict) return attribute_text(*this);
      if (parent->access == Access::constant && PyUnicode_Check(key.get())) {
        return to_string(key.get());  // a global
      }
      return parent->expression() + "[" + short_repr(key.get()) + "]";
    case Access::element:
      return parent->expression() + "[" + std::to_string(index) + "]";
    case Access::member: {
      PyObject* descriptor_name = PyObject_GetAttrString(key.get(), "__name__");
      const std::string text = descriptor_name == nullptr ? "?" : to_string(descriptor_name);
      Py_XDECREF(descriptor_name);
      PyErr_Clear();
      return parent->expression() + "." + text;
    }
    case Access::receiver:
      return parent->expression() + ".__self__";
    case Access::callee:
      return parent->expression() + ".__func__";
    case Access::referent:
      return parent->expression() + "()";
    case Access::array:
      return parent->expression();
    case Access::answer:
      return answer_text(key.get());
  }
  return "?";
}

std::string Source::placeholder_name() const {
  const bool is_local = [&] {
    const Source* root = this;
    while (root->parent != nullptr) root = root->parent;
    return root->access == Access::slot;
  }();
  std::string text = is_local ? "L_" : "G_";
  bool last_is_separator = false;
  for (const char c : expression()) {
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    if (is_word) {
      text += c;
      last_is_separator = false;
    } else if (!last_is_separator) {
      text += '_';
      last_is_separator = true;
    }
  }
  if (text.back() != '_') text += '_';
  return text;
}

std::size_t SourceTree::Hash::operator()(const Key& key) const {
  const std::hash<const void*> pointer;
  return pointer(key.parent) * 31 + pointer(key.key) * 17 +
         static_cast<std::size_t>(key.access) * 7 + static_cast<std::size_t>(key.index);
}

Source* SourceTree::get(Access access, Source* parent, PyObject* key, Py_ssize_t index) {
  const Key wanted{access, parent, key, index};
  if (const auto known = found_.find(wanted); known != found_.end()) return known->second;
  Source& made = sources_.emplace_back(static_cast<int>(sources_.size()), access, parent,
                                       Ref::borrow(key), index);
  order_.emplace_back(wanted, &made);
  found_.emplace(wanted, &made);
  return &made;
}

Source* SourceTree::slot(Py_ssize_t index, std::string name) {
  Source* made = get(Access::slot, nullptr, nullptr, index);
  made->name = std::move(name);
  return made;
}

void SourceTree::truncate(std::size_t size) {
  while (sources_.size() > size) {
    found_.erase(order_.back().first);
    order_.pop_back();
    sources_.pop_back();
  }
  for (Source& source : sources_) {
    if (source.checks.same_as != nullptr && source.checks.same_as->id >= static_cast<int>(size)) {
      source.checks.same_as = nullptr;
    }
  }
}

}  // namespace assay::capture
