// Sizes that may be others in later calls. Numbers that follow from them are nodes of the graph; a
// program that decides something by one fits only where that comes out the same (size_numbers.h).
#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>

#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"
#include "observe/observe.h"
#include "opcode.h"

namespace assay::capture {

namespace {

constexpr std::uint64_t kAllDimensions = ~std::uint64_t{0};

std::uint64_t bit(std::int64_t dimension) { return std::uint64_t{1} << dimension; }

// Arithmetic of integers that a graph can do: BINARY_OP's argument -> the function.
const char* arithmetic(int op) {
  switch (op) {
    case NB_ADD:
    case NB_INPLACE_ADD:
      return "operator.add";
    case NB_SUBTRACT:
    case NB_INPLACE_SUBTRACT:
      return "operator.sub";
    case NB_MULTIPLY:
    case NB_INPLACE_MULTIPLY:
      return "operator.mul";
    case NB_FLOOR_DIVIDE:
    case NB_INPLACE_FLOOR_DIVIDE:
      return "operator.floordiv";
    case NB_REMAINDER:
    case NB_INPLACE_REMAINDER:
      return "operator.mod";
    default:
      return nullptr;
  }
}

bool fits(PyObject* number, std::int64_t& value) {
  int overflow = 0;
  value = PyLong_AsLongLongAndOverflow(number, &overflow);
  return overflow == 0;
}

// Calls that give a tuple whose length does not follow from sizes.
bool has_fixed_results(const graph::Target& target, PyObject* result) {
  static const std::unordered_set<std::string_view> names = {"var_mean",
                                                             "std_mean",
                                                             "lstm",
                                                             "gru",
                                                             "rnn_tanh",
                                                             "rnn_relu",
                                                             "lstm_cell",
                                                             "native_layer_norm",
                                                             "native_group_norm",
                                                             "meshgrid",
                                                             "native_batch_norm",
                                                             "native_dropout",
                                                             "broadcast_tensors",
                                                             "max_pool1d_with_indices",
                                                             "max_pool2d_with_indices",
                                                             "multi_head_attention_forward"};
  return Py_TYPE(result) != &PyTuple_Type || names.contains(target.base_name());
}

std::string text_of(const graph::StackTrace& stack) {
  if (stack.empty()) return "";
  const graph::StackFrame frame = stack.frames().back();
  return " (" + frame.file + ":" + std::to_string(frame.line) + ", " + frame.text + ")";
}

// What mark_dynamic or mark_static note on a tensor.
std::uint64_t marked_dimensions(PyObject* tensor, PyObject* name) {
  PyObject** dict = _PyObject_GetDictPtr(tensor);
  PyObject* marked = dict == nullptr || *dict == nullptr ? nullptr : PyDict_GetItem(*dict, name);
  if (marked == nullptr || !PyAnySet_Check(marked)) return 0;
  std::uint64_t found = 0;
  PyObject* item = nullptr;
  Py_ssize_t position = 0;
  Py_hash_t hash = 0;
  while (_PySet_NextEntry(marked, &position, &item, &hash) != 0) {
    std::int64_t dimension = 0;
    if (PyLong_Check(item) && fits(item, dimension) && dimension >= 0 &&
        dimension < tensor_of(tensor).dim()) {
      found |= bit(dimension);
    }
  }
  return found;
}

// Calls that divide a tensor along one dimension, and the place of that among their arguments.
std::size_t place_of_split_dimension(std::string_view name) {
  if (name == "unbind") return 1;
  if (name == "chunk" || name == "split" || name == "tensor_split" || name == "unsafe_chunk" ||
      name == "unsafe_split" || name == "split_with_sizes") {
    return 2;
  }
  return 0;
}

}  // namespace

std::uint64_t Recorder::open_dimensions(const Tracked& tracked, PyObject* tensor) const {
  const at::Tensor& value = tensor_of(tensor);
  if (value.is_nested() || value.layout() != c10::kStrided || value.dim() > 63) return 0;
  if (!follows_sizes_) return 0;
  static PyObject* const dynamic = PyUnicode_InternFromString("_dynamo_dynamic_indices");
  static PyObject* const fixed = PyUnicode_InternFromString("_dynamo_static_indices");
  const std::uint64_t marked = has_marked_tensors() ? marked_dimensions(tensor, dynamic) : 0;
  const std::uint64_t closed = has_marked_tensors() ? marked_dimensions(tensor, fixed) : 0;
  if (const auto found = open_.sizes.find(tracked.source->expression());
      found != open_.sizes.end()) {
    return (found->second | marked) & ~closed;
  }
  if (marked != 0) return marked;
  if (!is_open_by_default_ || Py_TYPE(tensor) == parameter_type()) return 0;
  for (const Source* source = tracked.source; source != nullptr; source = source->parent) {
    if (source->access == Access::dict) return 0;  // an attribute
  }
  std::uint64_t open = 0;
  for (std::int64_t i = 0; i < value.dim(); ++i) {
    if (value.size(i) > 1) open |= bit(i);
  }
  return open & ~closed;
}

PyObject* Recorder::open_number(PyObject* value, Source& source) {
  if (!follows_sizes_ || fixes_all_sizes_ || open_.numbers.empty()) return nullptr;
  std::int64_t number = 0;
  const bool is_number =
      (PyLong_CheckExact(value) && fits(value, number)) || PyFloat_CheckExact(value);
  if (!is_number || source.checks.value || !open_.numbers.contains(source.expression())) {
    return nullptr;
  }
  graph::Node& placeholder = add_placeholder(source);
  inputs_.push_back({&source, &placeholder, {}, 0, false, true, Ref::borrow(value)});
  source.checks.type = Ref::borrow(Py_TYPE(value));
  source.checks.is_int64 = PyLong_CheckExact(value);
  return size_numbers_.make_input(placeholder, value);
}

bool Recorder::has_varying_size(PyObject* tensor) {
  if (!follows_sizes_ || fixes_all_sizes_ || !is_tensor(tensor) || !touch(tensor)) return false;
  const Tracked* tracked = tracked_.find(tensor);
  return tracked != nullptr && tracked->varying != 0;
}

graph::Node& Recorder::add_size_node(graph::Node& node) {
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  return node;
}

PyObject* Recorder::size_of(PyObject* tensor, std::int64_t dimension) {
  const std::int64_t size = tensor_of(tensor).size(dimension);
  const Tracked* tracked = tracked_.find(tensor);
  if (!has_varying_size(tensor) || (tracked->varying & bit(dimension)) == 0) {
    return PyLong_FromLongLong(size);
  }
  graph::Node* node = node_of(tensor);
  if (node == nullptr) {
    fix_all_sizes("a tensor that cannot be an input of a graph");
    return PyLong_FromLongLong(size);
  }
  return size_numbers_.make(add_size_node(graph_->call_method("size", {node, dimension})), size);
}

PyObject* Recorder::sizes_of(PyObject* tensor) {
  const std::int64_t dimensions = tensor_of(tensor).dim();
  const Ref items = Ref::steal(PyTuple_New(dimensions));
  for (std::int64_t i = 0; items && i < dimensions; ++i) {
    PyObject* size = size_of(tensor, i);
    if (size == nullptr) return nullptr;
    PyTuple_SET_ITEM(items.get(), i, size);
  }
  const Ref arguments = items ? Ref::steal(PyTuple_Pack(1, items.get())) : Ref();
  return arguments ? size_type()->tp_new(size_type(), arguments.get(), nullptr) : nullptr;
}

// torch.Size.numel and math.prod.
bool Recorder::multiplies_sizes(const Call& call, PyObject*& result) {
  static PyObject* const numel = PyDict_GetItemString(size_type()->tp_dict, "numel");
  static PyObject* const prod = PyObject_GetAttrString(import_module("math"), "prod");
  if ((call.callable != numel && call.callable != prod) || size_numbers_.empty()) return false;
  PyObject* items = call.args[0];
  if (!PyTuple_Check(items) && !PyList_Check(items)) return false;
  Ref product = Ref::steal(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items, i);
    if (!PyLong_CheckExact(item)) return false;
    PyObject* next = nullptr;
    if (!calculates_size(NB_MULTIPLY, product.get(), item, next)) {
      next = PyNumber_Multiply(product.get(), item);
      if (next == nullptr) return false;
    }
    product = Ref::steal(next);
  }
  result = product.release();
  return true;
}

bool Recorder::answers_size(const Call& call, PyObject*& result) {
  if (call.count == 0 || call.names != nullptr) return false;
  if (call.count == 1 && multiplies_sizes(call, result)) return true;
  if (!has_varying_size(call.args[0])) return false;
  PyObject* tensor = call.args[0];
  const std::int64_t dimensions = tensor_of(tensor).dim();
  const Ref name_object = Ref::steal(PyObject_GetAttrString(call.callable, "__name__"));
  PyErr_Clear();
  const std::string name =
      name_object && PyUnicode_Check(name_object.get()) ? to_string(name_object.get()) : "";
  if (name == "size" && call.count == 1) {
    result = sizes_of(tensor);
    return true;
  }
  std::int64_t dimension = 0;
  if (name == "size" && call.count == 2 && PyLong_CheckExact(call.args[1]) &&
      size_numbers_.find(call.args[1]) == nullptr && fits(call.args[1], dimension) &&
      dimension >= -dimensions && dimension < dimensions) {
    result = size_of(tensor, dimension < 0 ? dimension + dimensions : dimension);
    return true;
  }
  if ((name == "__len__" || name == "len") && call.count == 1 && dimensions > 0) {
    result = size_of(tensor, 0);
    return true;
  }
  if ((name == "numel" || name == "nelement") && call.count == 1) {
    graph::Node* node = node_of(tensor);
    if (node == nullptr) return false;
    result = size_numbers_.make(add_size_node(graph_->call_method("numel", {node})),
                                tensor_of(tensor).numel());
    return true;
  }
  return false;
}

void Recorder::fix_all_sizes(const std::string& why) {
  if (fixes_all_sizes_) return;
  fixes_all_sizes_ = true;
  observe::log(observe::Component::dynamic, observe::Level::info, [&] {
    return "all sizes are fixed: " + why + (follows_sizes_ ? text_of(user_stack()) : "");
  });
}

void Recorder::expect_number(graph::Node& node, std::int64_t value) {
  observe::log(observe::Component::dynamic, observe::Level::debug, [&] {
    return "'" + node.name() + "' must be " + std::to_string(value) + text_of(user_stack());
  });
  if (node.op() == graph::Op::placeholder) {  // a number from outside is guarded again
    const auto input = std::ranges::find(inputs_, &node, &Input::placeholder);
    if (input != inputs_.end()) input->source->checks.value = input->number;
    return;
  }
  // The size of an input is guarded again.
  if (node.op() == graph::Op::call_method && node.target().name() == "size") {
    const graph::Node* of = node.args()[0].node();
    for (const Input& input : inputs_) {
      if (input.placeholder != of) continue;
      const auto dimension = static_cast<std::size_t>(*node.args()[1].get_if<std::int64_t>());
      if (input.source->checks.tensor) input.source->checks.tensor->fix(dimension);
      for (auto& [object, tracked] : tracked_) {
        if (tracked.source == input.source) tracked.varying &= ~(std::uint64_t{1} << dimension);
      }
      return;
    }
  }
  size_numbers_.expect(node, value);
}

// The tensors in an object, and what cannot be looked into.
void Recorder::use_sizes(PyObject* object, int depth) {
  if (!follows_sizes_ || fixes_all_sizes_ || object == nullptr) return;
  if (is_tensor(object)) {
    if (has_varying_size(object)) fix_all_sizes("the sizes of a tensor are looked at");
  } else if (depth < 20 && (PyTuple_Check(object) || PyList_Check(object))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      use_sizes(PySequence_Fast_GET_ITEM(object, i), depth + 1);
    }
  } else if (depth < 20 && PyDict_Check(object)) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(object, &position, &key, &value) != 0) use_sizes(value, depth + 1);
  }
  if (depth == 0) use_numbers(object);
}

void Recorder::use_numbers(PyObject* object, int depth) {
  if (size_numbers_.empty() || fixes_all_sizes_ || object == nullptr) return;
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object)) {
    graph::Node* node = size_numbers_.find(object);
    if (node != nullptr)
      expect_number(*node, PyFloat_CheckExact(object) ? 0 : PyLong_AsLongLong(object));
    return;
  }
  if (depth > 20 || PyIter_Check(object))
    return fix_all_sizes("an iterator is given to a function");
  const auto use = [&](PyObject* item) { use_numbers(item, depth + 1); };
  if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      use(PySequence_Fast_GET_ITEM(object, i));
    }
  } else if (PyDict_Check(object)) {
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(object, &position, &key, &value) != 0) {
      use(key);
      use(value);
    }
  } else if (PyAnySet_Check(object)) {
    PyObject* item = nullptr;
    Py_ssize_t position = 0;
    Py_hash_t hash = 0;
    while (_PySet_NextEntry(object, &position, &item, &hash) != 0) use(item);
  } else if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    use(slice->start);
    use(slice->stop);
    use(slice->step);
  } else if (PyMethod_Check(object)) {
    use(PyMethod_GET_SELF(object));
  } else if (PyExceptionInstance_Check(object)) {
    use(reinterpret_cast<PyBaseExceptionObject*>(object)->args);
  } else if (PyObject* viewed = dict_of_view(object)) {
    use(viewed);
  } else if (Py_TYPE(object) == deque_type()) {
    const Ref items = Ref::steal(PySequence_List(object));
    use(items.get());
  }
}

void Recorder::use_sizes(const Call& call, SizeUse use) {
  // int(number) is the number; int(1.5) is not.
  const bool is_itself = call.callable == reinterpret_cast<PyObject*>(&PyLong_Type) &&
                         call.count == 1 && PyLong_CheckExact(call.args[0]);
  if (use == SizeUse::follows || is_itself) return;
  const bool were_fixed = fixes_all_sizes_;
  for (std::size_t i = 0; i < call.count; ++i) {
    if (use == SizeUse::all) {
      use_sizes(call.args[i]);
    } else {
      use_numbers(call.args[i]);
    }
  }
  if (fixes_all_sizes_ && !were_fixed) {
    observe::log(observe::Component::dynamic, observe::Level::info,
                 [&] { return "  by " + short_repr(call.callable); });
  }
}

bool Recorder::to_number(PyObject* object, graph::Argument& argument) {
  if (!PyLong_CheckExact(object)) return false;
  if (graph::Node* node = size_numbers_.find(object)) {
    argument = node;
    return true;
  }
  std::int64_t value = 0;
  if (!fits(object, value)) return false;
  argument = value;
  return true;
}

bool Recorder::calculates_size(int op, PyObject* left, PyObject* right, PyObject*& result) {
  if (size_numbers_.empty() || fixes_all_sizes_) return false;
  if (size_numbers_.find(left) == nullptr && size_numbers_.find(right) == nullptr) return false;
  const char* function = arithmetic(op);
  graph::Argument one;
  graph::Argument other;
  if (function == nullptr || !to_number(left, one) || !to_number(right, other)) return false;
  const binaryfunc compute = op == NB_ADD || op == NB_INPLACE_ADD             ? PyNumber_Add
                             : op == NB_SUBTRACT || op == NB_INPLACE_SUBTRACT ? PyNumber_Subtract
                             : op == NB_MULTIPLY || op == NB_INPLACE_MULTIPLY ? PyNumber_Multiply
                             : op == NB_REMAINDER || op == NB_INPLACE_REMAINDER
                                 ? PyNumber_Remainder
                                 : PyNumber_FloorDivide;
  const Ref computed = Ref::steal(compute(left, right));
  std::int64_t value = 0;
  if (!computed || !fits(computed.get(), value)) {
    PyErr_Clear();  // raised again by who does not follow it
    return false;
  }
  result = size_numbers_.make(
      add_size_node(graph_->call_function(function, {std::move(one), std::move(other)})), value);
  return true;
}

bool Recorder::compares_size(int op, PyObject* left, PyObject* right, PyObject*& result) {
  if (size_numbers_.empty() || fixes_all_sizes_) return false;
  if (size_numbers_.find(left) == nullptr && size_numbers_.find(right) == nullptr) return false;
  graph::Argument one;
  graph::Argument other;
  if (!to_number(left, one) || !to_number(right, other)) return false;
  const int truth = PyObject_RichCompareBool(left, right, op);
  if (op == Py_EQ && truth == 1) {  // is as good as to know the number
    for (const auto& [number, value] : {std::pair(&one, right), std::pair(&other, left)}) {
      if (number->node() == nullptr || size_numbers_.find(value) != nullptr) continue;
      expect_number(*number->node(), PyLong_AsLongLong(value));
      result = Py_NewRef(Py_True);
      return true;
    }
  }
  graph::Node& node =
      graph_->call_function(comparison_function(op), {std::move(one), std::move(other)});
  size_numbers_.make_truth(add_size_node(node), truth == 1);
  result = Py_NewRef(truth == 1 ? Py_True : Py_False);
  return true;
}

// These objects stand for those that eager would have: the one that came from outside, or what
// CPython makes of a result, which for small numbers is always the same object.
PyObject* Recorder::is_same_number(PyObject* left, PyObject* right, bool invert) {
  use_sizes(left);
  use_sizes(right);
  const auto usual = [&](PyObject* object) {
    const graph::Node* node = size_numbers_.find(object);
    if (node == nullptr) return Ref::borrow(object);
    const auto input = std::ranges::find(inputs_, node, &Input::placeholder);
    if (input != inputs_.end()) return input->number;
    return Ref::steal(PyLong_FromLongLong(PyLong_AsLongLong(object)));
  };
  const bool is_one_object = left == right;
  return Py_NewRef((is_one_object || usual(left).get() == usual(right).get()) != invert ? Py_True
                                                                                        : Py_False);
}

void Recorder::use_split_size(const Call& call, std::size_t place) {
  PyObject* dimension = nullptr;
  for (std::size_t i = call.positional(); i < call.count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - call.positional()));
    if (PyUnicode_CompareWithASCIIString(name, "dim") == 0) dimension = call.args[i];
  }
  if (dimension == nullptr && call.positional() > place) dimension = call.args[place];
  std::int64_t index = 0;
  const bool is_known =
      call.positional() > 0 && is_tensor(call.args[0]) &&
      (dimension == nullptr || (PyLong_CheckExact(dimension) && fits(dimension, index)));
  if (!is_known) return fix_all_sizes("a tensor is divided along an unknown dimension");
  if (place == 2) {
    if (call.positional() < 2) return fix_all_sizes("a tensor is divided by a keyword");
    PyObject* parts = call.args[1];
    if (PyTuple_Check(parts) || PyList_Check(parts)) return use_sizes(dimension);
    use_sizes(parts);
  }
  PyObject* tensor = call.args[0];
  const std::int64_t dimensions = tensor_of(tensor).dim();
  const Ref size = Ref::steal(size_of(tensor, index < 0 ? index + dimensions : index));
  use_sizes(size.get());
  use_sizes(dimension);
}

void Recorder::results_vary(const graph::Target& target, const Call& call, PyObject* result) {
  const auto vary = [&](PyObject* object) {
    Tracked* tracked = is_tensor(object) ? tracked_.find(object) : nullptr;
    if (tracked == nullptr) return;
    // Of an input that is written to, the sizes are those of the guards.
    if (tracked->kind == Tracked::Kind::node) tracked->varying = kAllDimensions;
  };
  vary(result);
  if (!PyTuple_Check(result) && !PyList_Check(result)) return;
  if (!has_fixed_results(target, result)) {
    if (const std::size_t place = place_of_split_dimension(target.base_name())) {
      use_split_size(call, place);
    } else {
      fix_all_sizes("how many results '" + target.name() + "' has may follow from sizes");
    }
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
    vary(PySequence_Fast_GET_ITEM(result, i));
  }
}

}  // namespace assay::capture
