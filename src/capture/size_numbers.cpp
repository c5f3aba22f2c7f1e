#include "capture/size_numbers.h"

#include <bit>

namespace assay::capture {

namespace {

// An int object that is no other's: CPython itself has one object for each small value.
PyObject* new_int(std::int64_t value) {
  std::uint64_t rest = value < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(value)
                                 : static_cast<std::uint64_t>(value);
  const int bits = 64 - std::countl_zero(rest);
  const Py_ssize_t digits = (bits + PyLong_SHIFT - 1) / PyLong_SHIFT;
  PyLongObject* made = _PyLong_New(digits);
  if (made == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < digits; ++i) {
    made->ob_digit[i] = static_cast<digit>(rest & PyLong_MASK);
    rest >>= PyLong_SHIFT;
  }
  Py_SET_SIZE(made, value < 0 ? -digits : digits);
  return reinterpret_cast<PyObject*>(made);
}

bool marked = false;  // guarded by the GIL

}  // namespace

bool has_marked_tensors() { return marked; }
void note_marked_tensors() { marked = true; }

graph::Node* SizeNumbers::find(PyObject* object) const {
  if (by_object_.empty()) return nullptr;
  const auto found = by_object_.find(object);
  return found == by_object_.end() ? nullptr : found->second;
}

PyObject* SizeNumbers::make(graph::Node& node, std::int64_t value) {
  PyObject* object = new_int(value);
  if (object == nullptr) return nullptr;
  numbers_.push_back({&node, Ref::borrow(object), value});
  by_object_.emplace(object, &node);
  return object;
}

PyObject* SizeNumbers::make_input(graph::Node& node, PyObject* value) {
  if (!PyFloat_CheckExact(value)) return make(node, PyLong_AsLongLong(value));
  PyObject* object = PyFloat_FromDouble(PyFloat_AS_DOUBLE(value));
  if (object == nullptr) return nullptr;
  numbers_.push_back({&node, Ref::borrow(object), 0});
  by_object_.emplace(object, &node);
  return object;
}

void SizeNumbers::make_truth(graph::Node& node, bool value) {
  numbers_.push_back({&node, Ref(), value ? 1 : 0});
  expect(node, value ? 1 : 0);
}

void SizeNumbers::expect(graph::Node& node, std::int64_t value) {
  for (const Condition& condition : conditions_) {
    if (condition.node == &node) return;
  }
  conditions_.push_back({&node, value});
}

void SizeNumbers::forget(const graph::Node& node) {
  std::erase_if(numbers_, [&](const Number& number) {
    if (number.node != &node) return false;
    by_object_.erase(number.object.get());
    return true;
  });
}

void SizeNumbers::truncate(const Mark& mark) {
  while (numbers_.size() > mark.numbers) {
    by_object_.erase(numbers_.back().object.get());
    numbers_.pop_back();
  }
  if (conditions_.size() > mark.conditions) conditions_.resize(mark.conditions);
}

}  // namespace assay::capture
