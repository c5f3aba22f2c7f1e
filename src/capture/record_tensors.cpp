// Tensors: calls become nodes of the graph, metadata are constants, values are not looked at.
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <string>
#include <string_view>
#include <unordered_set>

#include "aten/resolve.h"
#include "aten/runner.h"
#include "capture/constant_objects.h"
#include "capture/cpython_311.h"
#include "capture/models.h"
#include "capture/python_argument.h"
#include "capture/recorder.h"
#include "capture/torch_types.h"
#include "opcode.h"

namespace assay::capture {

namespace {

// BINARY_OP's argument -> the function of Python's operator module.
constexpr std::array<const char*, 26> kOperatorNames = {
    "operator.add",      "operator.and_",    "operator.floordiv", "operator.lshift",
    "operator.matmul",   "operator.mul",     "operator.mod",      "operator.or_",
    "operator.pow",      "operator.rshift",  "operator.sub",      "operator.truediv",
    "operator.xor",      "operator.iadd",    "operator.iand",     "operator.ifloordiv",
    "operator.ilshift",  "operator.imatmul", "operator.imul",     "operator.imod",
    "operator.ior",      "operator.ipow",    "operator.irshift",  "operator.isub",
    "operator.itruediv", "operator.ixor"};

constexpr std::array<const char*, 6> kComparisons = {"operator.lt", "operator.le", "operator.eq",
                                                     "operator.ne", "operator.gt", "operator.ge"};

// Attributes that follow from what tensor guards check.
bool is_metadata(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {
      "shape",   "dtype",     "device",    "ndim",         "requires_grad", "is_leaf",   "layout",
      "is_cuda", "is_cpu",    "is_sparse", "is_quantized", "is_meta",       "is_nested", "is_mps",
      "is_xpu",  "is_mkldnn", "itemsize",  "nbytes",       "is_sparse_csr", "is_ipu",    "is_hpu",
      "is_xla",  "is_vulkan", "is_mtia",   "is_maia",      "_is_param"};
  return names.contains(name);
}

bool is_view_attribute(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {"T", "mT", "H", "mH", "real", "imag"};
  return names.contains(name);
}

// Operators that change what a tensor is, not what it holds.
bool changes_identity(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {"requires_grad_",
                                                             "detach_",
                                                             "set_",
                                                             "resize_",
                                                             "resize_as_",
                                                             "retain_grad",
                                                             "_resize_output_",
                                                             "set_data",
                                                             "rename_",
                                                             "share_memory_",
                                                             "data",
                                                             "sparse_resize_",
                                                             "squeeze_",
                                                             "unsqueeze_",
                                                             "transpose_",
                                                             "t_",
                                                             "swapaxes_",
                                                             "swapdims_",
                                                             "as_strided_"};
  return names.contains(name);
}

bool resolves(const graph::Target& target, bool is_method) {
  static std::unordered_map<const void*, bool> known[2];
  const auto [entry, is_new] = known[is_method ? 1 : 0].try_emplace(target.id(), false);
  if (is_new) {
    try {
      aten::resolve(is_method ? graph::Op::call_method : graph::Op::call_function, target);
      entry->second = !changes_identity(target.base_name());
    } catch (const std::exception&) {
      entry->second = false;  // needs Python: the caller does without it
    }
  }
  return entry->second;
}

graph::ValueMeta meta_of(const at::Tensor& tensor) {
  return aten::describe(aten::Value(c10::IValue(tensor)));
}

}  // namespace

graph::Node* Recorder::node_of(PyObject* tensor) {
  if (!touch(tensor) || !is_plain_tensor(tensor)) return nullptr;
  Tracked* tracked = tracked_.find(tensor);
  if (tracked->node != nullptr || tracked->source == nullptr) return tracked->node;
  const at::Tensor& value = tensor_of(tensor);
  if (value.layout() != c10::kStrided || !value.device().is_cpu() || value.is_quantized() ||
      value.is_nested()) {
    return nullptr;
  }
  graph::Node* placeholder = nullptr;
  const std::string name = tracked->source->placeholder_name();
  graph::Node* first_call = nullptr;
  for (graph::Node& node : graph_->nodes()) {
    if (node.op() != graph::Op::placeholder) {
      first_call = &node;
      break;
    }
  }
  if (first_call != nullptr) {
    const graph::Graph::InsertBefore before(*graph_, *first_call);
    placeholder = &graph_->placeholder(name);
  } else {
    placeholder = &graph_->placeholder(name);
  }
  placeholder->meta.value = meta_of(value);
  tracked->node = placeholder;
  inputs_.push_back({tracked->source, placeholder, value,
                     value.is_inference() ? 0 : static_cast<std::uint32_t>(value._version()),
                     value.requires_grad()});
  return placeholder;
}

bool Recorder::to_argument(PyObject* object, graph::Argument& argument, int depth) {
  if (depth > 20) return false;
  if (is_tensor(object)) {
    graph::Node* node = node_of(object);
    if (node == nullptr) return false;
    argument = node;
    return true;
  }
  if (!is_scalar(object)) touch(object);  // a number or dtype from outside is guarded
  if (plain_argument(object, argument)) return true;
  if (!know_contents(object)) return false;
  std::vector<graph::Argument> items;
  const auto add = [&](PyObject* item) {
    return to_argument(item, items.emplace_back(), depth + 1);
  };
  if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      if (!add(PySequence_Fast_GET_ITEM(object, i))) return false;
    }
    if (PyTuple_Check(object)) {
      argument = graph::Tuple{std::move(items)};
    } else {
      argument = graph::List{std::move(items)};
    }
    return true;
  }
  if (Py_TYPE(object) == &PyRange_Type) {
    const Ref numbers = Ref::steal(PySequence_List(object));
    for (Py_ssize_t i = 0; numbers && i < PyList_GET_SIZE(numbers.get()); ++i) {
      if (!add(PyList_GET_ITEM(numbers.get(), i))) return false;
    }
    argument = graph::List{std::move(items)};
    return static_cast<bool>(numbers);
  }
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    if (!add(slice->start) || !add(slice->stop) || !add(slice->step)) return false;
    argument = graph::Slice{std::move(items)};
    return true;
  }
  if (PyDict_CheckExact(object)) {
    graph::Dict dict;
    Py_ssize_t position = 0;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    while (PyDict_Next(object, &position, &key, &value) != 0) {
      if (!PyUnicode_Check(key) || !to_argument(value, dict.items.emplace_back(), depth + 1)) {
        return false;
      }
      dict.keys.push_back(to_string(key));
    }
    argument = std::move(dict);
    return true;
  }
  return false;
}

bool Recorder::arguments_of(const Call& call, std::vector<graph::Argument>& args,
                            std::vector<graph::NamedArgument>& kwargs) {
  const std::size_t positional = call.positional();
  for (std::size_t i = 0; i < positional; ++i) {
    if (!to_argument(call.args[i], args.emplace_back())) return false;
  }
  for (std::size_t i = positional; i < call.count; ++i) {
    graph::NamedArgument& named = kwargs.emplace_back();
    named.name = to_string(PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional)));
    if (!to_argument(call.args[i], named.value)) return false;
  }
  return true;
}

bool Recorder::bind_results(PyObject* result, graph::Node& node) {
  if (is_tensor(result)) {
    node.meta.value = meta_of(tensor_of(result));
    if (tracked_.find(result) == nullptr) {
      if (Py_TYPE(result) != tensor_type()) return false;
      tracked_.add(result, Tracked::Kind::node).node = &node;
    }
    return true;
  }
  if (result == Py_None) return true;
  if (!PyTuple_Check(result) && !PyList_CheckExact(result)) return false;
  std::vector<graph::ValueMeta> metas;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(result, i);
    if (!is_tensor(item)) {
      if (item == Py_None) {
        metas.emplace_back();
        continue;
      }
      // Lists in tuples, as of some optimizer-like functions: not needed so far.
      return false;
    }
    metas.push_back(meta_of(tensor_of(item)));
    if (tracked_.find(item) != nullptr) continue;
    graph::Node& taken =
        graph_->call_function("operator.getitem", {&node, static_cast<std::int64_t>(i)});
    taken.meta.stack = node.meta.stack;
    taken.meta.value = metas.back();
    nodes_.push_back(&taken);
    tracked_.add(item, Tracked::Kind::node).node = &taken;
  }
  node.meta.value = {std::move(metas)};
  if (tracked_.find(result) == nullptr) {
    tracked_.add(result, Tracked::Kind::local).is_known = true;
  }
  return true;
}

namespace {

// An operator that is not PyTorch's own: what its backward does is not known, and may depend on
// values.
bool is_of_a_library(const graph::Target& target) {
  const std::string_view name = target.name();
  constexpr std::string_view prefix = "torch.ops.";
  if (!name.starts_with(prefix)) return false;
  const std::string_view rest = name.substr(prefix.size());
  for (const std::string_view own : {"aten.", "prims.", "prim.", "quantized.", "mkldnn."}) {
    if (rest.starts_with(own)) return false;
  }
  return true;
}

bool needs_gradient(const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (is_tensor(call.args[i]) && tensor_of(call.args[i]).requires_grad()) return true;
  }
  return false;
}

}  // namespace

PyObject* Recorder::call_tensor_function(Activation& a, const graph::Target& target, bool is_method,
                                         const Call& call) {
  std::vector<graph::Argument> args;
  std::vector<graph::NamedArgument> kwargs;
  if (!resolves(target, is_method)) {
    return call_plainly(a, call, "'" + target.name() + "' cannot be part of a graph");
  }
  if (is_of_a_library(target) && grad_mode_ && needs_gradient(call)) {
    return call_plainly(a, call, "the gradient of '" + target.name() + "' is written in Python");
  }
  // torch.sort(x, out=(values, indices)): the runner takes one tensor per name.
  const std::size_t positional = call.positional();
  for (std::size_t i = positional; i < call.count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional));
    if (PyUnicode_CompareWithASCIIString(name, "out") == 0 && PyTuple_Check(call.args[i])) {
      return call_plainly(a, call, "several results are written to out=");
    }
  }
  if (!arguments_of(call, args, kwargs)) {
    return call_plainly(a, call,
                        "an argument of '" + target.name() + "' cannot be part of a graph");
  }
  watch_.forget();
  const std::size_t before = watch_.count();
  PyObject* result = nullptr;
  {
    const SuspendScope suspended(*this);
    result = PyObject_Vectorcall(call.callable, call.args, call.positional(), call.names);
  }
  expected_operators_ += watch_.count() - before;
  if (result == nullptr) {
    // Whether a call raises may depend on values: it stays outside of the graph.
    PyObject* type = nullptr;
    PyObject* value = nullptr;
    PyObject* traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    if (!stop(a, "'" + target.name() + "' raised", false)) PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  const auto end = [&](std::string why) -> PyObject* {
    if (!stop(a, std::move(why))) {
      Py_DECREF(result);
      return nullptr;
    }
    return result;
  };
  if (!watch_.value_read().empty()) {
    return end("'" + target.name() + "' depends on the values of tensors (" + watch_.value_read() +
               ")");
  }
  graph::Node& node = is_method
                          ? graph_->call_method(target.name(), std::move(args), std::move(kwargs))
                          : graph_->call_function(target, std::move(args), std::move(kwargs));
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  if (!bind_results(result, node)) {
    return end("'" + target.name() + "' returned an object of type '" +
               std::string(Py_TYPE(result)->tp_name) + "'");
  }
  return result;
}

PyObject* Recorder::tensor_operator(Activation& a, const char* name, PyObject* left,
                                    PyObject* right) {
  static PyObject* const module = import_module("operator");
  const char* base = std::string_view(name).data() + std::string_view("operator.").size();
  const Ref function = Ref::steal(PyObject_GetAttrString(module, base));
  PyObject* args[] = {nullptr, left, right};
  return call_tensor_function(a, name, false,
                              {function.get(), args + 1, right == nullptr ? 1U : 2U, nullptr});
}

PyObject* Recorder::tensor_attribute(Activation& a, PyObject* tensor, PyObject* name) {
  const std::string text = to_string(name);
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return PyObject_GetAttr(tensor, name);
  };
  if (!is_plain_tensor(tensor)) return plainly("a tensor subclass with behavior of its own");
  if (is_metadata(text)) return made(a, PyObject_GetAttr(tensor, name), "an attribute of a tensor");
  if (is_view_attribute(text)) {
    static PyObject* const function = PyObject_GetAttrString(import_module("builtins"), "getattr");
    PyObject* args[] = {nullptr, tensor, name};
    return call_tensor_function(a, "getattr", false, {function, args + 1, 2, nullptr});
  }
  if (text == "__class__") {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
    is_constant(type);
    return Py_NewRef(type);
  }
  if (text == "grad_fn" && tensor_of(tensor).is_leaf()) return Py_NewRef(Py_None);  // guarded
  PyObject* descriptor = lookup_on_type(Py_TYPE(tensor), name);
  if (descriptor != nullptr && Py_TYPE(descriptor) == &PyGetSetDescr_Type) {
    Tracked* tracked = tracked_.find(tensor);
    if (text == "grad" && tracked->source != nullptr) {
      PyObject* found = PyObject_GetAttr(tensor, name);
      if (found == nullptr) return nullptr;
      Source* source = sources_.get(Access::member, tracked->source, descriptor);
      if (!arrived(found, source)) {
        Py_DECREF(found);
        return plainly("the gradient of a tensor");
      }
      return found;
    }
    if (text == "__dict__") return plainly("a tensor's __dict__");
    return plainly("the attribute '" + text + "' of a tensor");
  }
  if (descriptor != nullptr && Py_TYPE(descriptor)->tp_descr_get != nullptr) {
    if (PyFunction_Check(descriptor) || Py_TYPE(descriptor) == &PyMethodDescr_Type ||
        Py_TYPE(descriptor) == &PyWrapperDescr_Type) {
      return bind_descriptor(a, descriptor, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor)),
                             name);
    }
    return plainly("the attribute '" + text + "' of a tensor");
  }
  Tracked* tracked = tracked_.find(tensor);
  if (tracked->source != nullptr) {
    if (PyObject* dict = dict_of(tensor)) {
      PyObject* found = read_item(dict, name);
      if (found != nullptr) return Py_NewRef(found);
    }
    if (descriptor == nullptr) return PyObject_GetAttr(tensor, name);  // raises AttributeError
  } else if (descriptor == nullptr) {
    PyObject* found = PyObject_GetAttr(tensor, name);
    if (found == nullptr) return nullptr;
    return made(a, found, "an attribute of a tensor");
  }
  return plainly("the attribute '" + text + "' of a tensor");
}

// ---- Operators ----

PyObject* Recorder::unary(Activation& a, Unary op, Operand value) {
  if (!is_recording()) return Operations::unary(a, op, value);
  read(value);
  if (op == Unary::logical_not) {
    const int truth = is_true(a, value);
    if (truth < 0) return nullptr;
    return Py_NewRef(truth == 1 ? Py_False : Py_True);
  }
  if (is_tensor(value.object)) {
    const char* name = op == Unary::negative   ? "operator.neg"
                       : op == Unary::positive ? "operator.pos"
                                               : "operator.invert";
    return tensor_operator(a, name, value.object, nullptr);
  }
  const char* method = op == Unary::negative   ? "__neg__"
                       : op == Unary::positive ? "__pos__"
                                               : "__invert__";
  if (is_python_method(value.object, method)) return call_method(a, value.object, method, {});
  if (!is_scalar(value.object)) {
    if (!stop(a, "an operator on an object that is not modelled")) return nullptr;
    return Operations::unary(a, op, value);
  }
  return Operations::unary(a, op, value);
}

PyObject* Recorder::binary(Activation& a, int op, Operand left, Operand right) {
  if (!is_recording()) return Operations::binary(a, op, left, right);
  read(left);
  read(right);
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return Operations::binary(a, op, left, right);
  };
  if (!touch(left.object) || !touch(right.object))
    return plainly("an operator on an unknown object");
  const char* name = kOperatorNames[static_cast<std::size_t>(op)];
  if (is_tensor(left.object) || is_tensor(right.object)) {
    return tensor_operator(a, name, left.object, right.object);
  }
  const bool is_in_place = op >= NB_INPLACE_ADD;
  if (is_in_place && !is_scalar(left.object)) {
    // list += iterable and its like change the left side.
    if (PyList_CheckExact(left.object) && op == NB_INPLACE_ADD) {
      if (!list_extend(a, left.object, right)) return nullptr;
      return Py_NewRef(left.object);
    }
    if (PyDict_CheckExact(left.object) || PySet_CheckExact(left.object) ||
        PyList_CheckExact(left.object)) {
      // The order of an older set would not be that of eager.
      const bool is_old_set =
          PySet_CheckExact(left.object) && tracked_.find(left.object)->source != nullptr;
      if (is_old_set || !know_contents(right.object) || !before_change(left.object)) {
        return plainly("a container is changed whose contents are not known");
      }
      PyObject* result = Operations::binary(a, op, left, right);
      if (result != nullptr) changed_contents(left.object);
      return result;
    }
  }
  bool is_python = false;
  for (PyObject* object : {left.object, right.object}) {
    if ((Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) continue;
    const std::string base(std::string_view(name).substr(std::string_view("operator.").size()));
    std::string plain = is_in_place ? base.substr(1) : base;
    if (plain.ends_with('_')) plain.pop_back();
    for (const std::string& method :
         {"__" + plain + "__", "__r" + plain + "__", "__i" + plain + "__"}) {
      is_python = is_python_method(object, method.c_str()) || is_python;  // all are guarded
    }
  }
  // Beside a method in Python, C code may get to read the items of a container.
  const auto is_known = [&](PyObject* object) {
    if (PyObject* dict = dict_of_view(object)) return know_all(dict);
    return is_python ? !is_container(object) || know_contents(object) : know_all(object);
  };
  if (!is_known(left.object) || !is_known(right.object)) {
    return plainly("an operator on objects whose contents are not known");
  }
  const std::size_t before = unexplained();
  PyObject* result = watched(a, before, Operations::binary(a, op, left, right));
  return made(a, result, "an operator");
}

PyObject* Recorder::compare(Activation& a, int op, Operand left, Operand right) {
  if (!is_recording()) return Operations::compare(a, op, left, right);
  read(left);
  read(right);
  const auto plainly = [&](const std::string& why) -> PyObject* {
    if (!stop(a, why)) return nullptr;
    return Operations::compare(a, op, left, right);
  };
  if (!touch(left.object) || !touch(right.object))
    return plainly("a comparison of unknown objects");
  const bool is_with_none = left.object == Py_None || right.object == Py_None;
  if (is_with_none && (op == Py_EQ || op == Py_NE) &&
      (is_plain_tensor(left.object) || is_plain_tensor(right.object))) {
    return Operations::compare(a, op, left, right);  // by identity
  }
  if (is_tensor(left.object) || is_tensor(right.object)) {
    return tensor_operator(a, kComparisons[static_cast<std::size_t>(op)], left.object,
                           right.object);
  }
  static constexpr std::array<const char*, 6> kMethods = {"__lt__", "__le__", "__eq__",
                                                          "__ne__", "__gt__", "__ge__"};
  const auto compares_itself = [&](PyObject* object) {
    const bool has_method = is_python_method(object, kMethods[static_cast<std::size_t>(op)]);
    // object.__ne__ asks __eq__.
    return has_method || (op == Py_NE && is_python_method(object, "__eq__"));
  };
  const bool is_python = compares_itself(left.object) || compares_itself(right.object);
  if (!is_python) {
    const auto is_known = [&](PyObject* object) {
      PyObject* dict = dict_of_view(object);
      return know_all(dict != nullptr ? dict : object);
    };
    const bool known = is_known(left.object) && is_known(right.object);
    const bool by_identity =
        (op == Py_EQ || op == Py_NE) &&
        (Py_TYPE(left.object)->tp_richcompare == PyBaseObject_Type.tp_richcompare ||
         Py_TYPE(right.object)->tp_richcompare == PyBaseObject_Type.tp_richcompare);
    if (!known && by_identity) {
      const Ref same = Ref::steal(is(a, left, right, op == Py_NE));
      if (!same || !is_recording()) return Operations::compare(a, op, left, right);
      return Py_NewRef(same.get());
    }
    if (!known) return plainly("a comparison of objects whose contents are not known");
  }
  const std::size_t before = unexplained();
  return made(a, watched(a, before, Operations::compare(a, op, left, right)), "a comparison");
}

PyObject* Recorder::is(Activation& a, Operand left, Operand right, bool invert) {
  if (!is_recording()) return Operations::is(a, left, right, invert);
  read(left);
  read(right);
  if (!touch(left.object) || !touch(right.object)) {
    if (!stop(a, "`is` on an unknown object")) return nullptr;
    return Operations::is(a, left, right, invert);
  }
  if (left.object != right.object && !is_scalar(left.object) && !is_scalar(right.object)) {
    const Tracked* one = tracked_.find(left.object);
    const Tracked* other = tracked_.find(right.object);
    if (one->source != nullptr && other->source != nullptr &&
        Py_TYPE(left.object) == Py_TYPE(right.object)) {
      distinct_.emplace_back(one->source, other->source);
    }
  }
  return Operations::is(a, left, right, invert);
}

bool Recorder::is_none(Activation& a, Operand value) {
  if (is_recording()) {
    read(value);
    touch(value.object);
  }
  return Operations::is_none(a, value);
}

int Recorder::is_true(Activation& a, Operand value) {
  if (!is_recording()) return Operations::is_true(a, value);
  read(value);
  PyObject* object = value.object;
  if (is_scalar(object)) return Operations::is_true(a, value);
  const auto plainly = [&](const char* why) {
    if (!stop(a, why)) return -1;
    return Operations::is_true(a, value);
  };
  if (!touch(object)) return plainly("a branch on an unknown object");
  if (is_tensor(object)) return plainly("a branch depends on the value of a tensor");
  if (is_container(object) || Py_TYPE(object) == deque_type()) {
    Tracked* tracked = tracked_.find(object);
    if (tracked->source != nullptr && !tracked->is_known && !tracked->is_mutated &&
        !is_python_method(object, "__len__") && !is_python_method(object, "__bool__")) {
      tracked->source->checks.length = PyObject_Size(object);
      return Operations::is_true(a, value);
    }
    if (tracked->source != nullptr && !know_contents(object)) {
      return plainly("a branch on a container whose contents are not known");
    }
    return Operations::is_true(a, value);
  }
  is_python_method(object, "__bool__");  // the lookups are guarded
  is_python_method(object, "__len__");
  PyTypeObject* type = Py_TYPE(object);
  const bool always_true =
      (type->tp_as_number == nullptr || type->tp_as_number->nb_bool == nullptr) &&
      (type->tp_as_mapping == nullptr || type->tp_as_mapping->mp_length == nullptr) &&
      (type->tp_as_sequence == nullptr || type->tp_as_sequence->sq_length == nullptr);
  if (always_true) return 1;
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 &&
      tracked_.find(object)->kind == Tracked::Kind::source) {
    return plainly("a branch on an object that is not modelled");
  }
  const std::size_t before = unexplained();
  const int truth = Operations::is_true(a, value);
  if (is_recording() && unexplained() != before) {
    if (!stop(a, "an operator ran inside __bool__")) return -1;
  }
  return truth;
}

}  // namespace assay::capture
