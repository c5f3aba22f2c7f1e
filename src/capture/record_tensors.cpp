// Tensors: calls become nodes of the graph, metadata are constants, values are not looked at.
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
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

namespace assay::capture {

namespace {

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
  static const std::unordered_set<std::string_view> names = {
      "requires_grad_", "detach_",         "set_",       "resize_", "resize_as_",
      "retain_grad",    "_resize_output_", "set_data",   "rename_", "share_memory_",
      "data",           "sparse_resize_",  "as_strided_"};
  return names.contains(name);
}

// Likewise, but a tensor that the graph computes may become another view of its memory.
bool changes_view(std::string_view name) {
  static const std::unordered_set<std::string_view> names = {"squeeze_", "unsqueeze_", "transpose_",
                                                             "t_",       "swapaxes_",  "swapdims_"};
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
  graph::Node* placeholder = &add_placeholder(*tracked->source);
  placeholder->meta.value = meta_of(value);
  tracked->node = placeholder;
  inputs_.push_back({tracked->source,
                     placeholder,
                     value,
                     value.is_inference() ? 0 : static_cast<std::uint32_t>(value._version()),
                     value.requires_grad(),
                     value.is_leaf(),
                     {}});
  return placeholder;
}

graph::Node& Recorder::add_placeholder(const Source& source) {
  const std::string name = source.placeholder_name();
  for (graph::Node& node : graph_->nodes()) {
    if (node.op() == graph::Op::placeholder) continue;
    const graph::Graph::InsertBefore before(*graph_, node);
    return graph_->placeholder(name);
  }
  return graph_->placeholder(name);
}

bool Recorder::to_argument(PyObject* object, graph::Argument& argument, int depth) {
  if (depth > 20) return false;
  if (is_tensor(object)) {
    graph::Node* node = node_of(object);
    if (node == nullptr) return false;
    saw_open_size_ = saw_open_size_ || tracked_.find(object)->has_open_size;
    saw_varying_size_ = saw_varying_size_ || has_varying_size(object);
    argument = node;
    return true;
  }
  if (graph::Node* number = size_numbers_.find(object)) {
    saw_varying_size_ = saw_varying_size_ || PyLong_CheckExact(object);
    argument = number;
    return true;
  }
  if (!size_numbers_.empty() && Py_TYPE(object) == size_type()) {
    graph::List sizes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      if (!to_argument(PyTuple_GET_ITEM(object, i), sizes.items.emplace_back(), depth + 1)) {
        return false;
      }
    }
    argument = std::move(sizes);
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

// Sizes follow from values that are read where no operator is seen to do it.
bool reads_memory(const graph::Target& target, const Call& call) {
  const std::string_view name = target.name();
  if (name.find("tensor_split") != std::string_view::npos) {
    return std::any_of(call.args + 1, call.args + call.count, is_tensor);
  }
  return name.find("_pack_padded_sequence") != std::string_view::npos ||
         name.find("_pad_packed_sequence") != std::string_view::npos;
}

// Whether a call looks at values only to raise where it must. The graph's call does the same.
bool only_checks_values(const graph::Target& target, const Call& call) {
  if (target.name() != "torch.nn.functional.one_hot" || call.count < 2) return false;
  PyObject* classes = call.args[1];
  return PyLong_CheckExact(classes) && PyLong_AsLongLong(classes) > 0;
}

// What a call that reads values gives: a tensor or as many tensors as ever, not a number. (How many
// tensor_split gives follows from its values.)
bool holds_tensors(const graph::Target& target, PyObject* result) {
  if (!PyTuple_Check(result)) return is_tensor(result);
  const std::string_view name = target.base_name();
  if (PyTuple_CheckExact(result) && name != "where" && name != "nonzero" &&
      name.find("unique") == std::string_view::npos) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i) {
    if (!is_tensor(PyTuple_GET_ITEM(result, i))) return false;
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
    if (is_method && target.name() == "retain_grad") note_hook(call.args[0]);
    return call_plainly(a, call, "'" + target.name() + "' cannot be part of a graph");
  }
  if (changes_view(target.base_name())) {
    const Tracked* tracked = call.count == 0 ? nullptr : tracked_.find(call.args[0]);
    if (tracked == nullptr || tracked->kind != Tracked::Kind::node) {
      return call_plainly(a, call, "'" + target.name() + "' of a tensor from before");
    }
    fix_all_sizes("'" + target.name() + "' moves the dimensions of a tensor");
  }
  if (is_of_a_library(target) && grad_mode_ && needs_gradient(call)) {
    return call_plainly(a, call, "the gradient of '" + target.name() + "' is written in Python");
  }
  if (reads_memory(target, call)) {
    return call_plainly(a, call, "'" + target.name() + "' depends on the values of tensors");
  }
  // torch.sort(x, out=(values, indices)): the runner takes one tensor per name.
  const std::size_t positional = call.positional();
  bool writes_out = false;
  for (std::size_t i = positional; i < call.count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - positional));
    if (PyUnicode_CompareWithASCIIString(name, "out") != 0) continue;
    if (PyTuple_Check(call.args[i])) {
      return call_plainly(a, call, "several results are written to out=");
    }
    writes_out = call.args[i] != Py_None;
  }
  saw_open_size_ = saw_varying_size_ = false;
  if (!arguments_of(call, args, kwargs)) {
    return call_plainly(a, call,
                        "an argument of '" + target.name() + "' cannot be part of a graph");
  }
  const bool takes_open_size = saw_open_size_;
  const bool varies = saw_varying_size_;
  if (varies && writes_out) fix_all_sizes("out= may change the size of a tensor");
  if (takes_open_size && writes_out) {
    return call_plainly(a, call, "the size of what out= takes follows from values");
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
  const bool reads_values = !watch_.value_read().empty() && !only_checks_values(target, call);
  // A number that Python itself takes out of a tensor for a call is no argument of the graph's
  // call.
  const bool reads_number = watch_.value_read().find("_local_scalar_dense") != std::string::npos &&
                            target.base_name() != "one_hot";
  const bool is_in_graph =
      sink_.allows_no_break() && !writes_out && !reads_number && holds_tensors(target, result);
  if (reads_values && !is_in_graph) {
    return end("'" + target.name() + "' depends on the values of tensors (" + watch_.value_read() +
               ")");
  }
  if (takes_open_size && (PyTuple_CheckExact(result) || PyList_CheckExact(result))) {
    return end("how many results '" + target.name() + "' has follows from values");
  }
  const std::vector<PyObject*> unknown =
      reads_values || takes_open_size ? untracked_tensors(result) : std::vector<PyObject*>{};
  graph::Node& node = is_method
                          ? graph_->call_method(target.name(), std::move(args), std::move(kwargs))
                          : graph_->call_function(target, std::move(args), std::move(kwargs));
  node.meta.stack = stacks_.intern(user_stack());
  nodes_.push_back(&node);
  if (!bind_results(result, node)) {
    return end("'" + target.name() + "' returned an object of type '" +
               std::string(Py_TYPE(result)->tp_name) + "'");
  }
  for (PyObject* tensor : unknown) tracked_.find(tensor)->has_open_size = true;
  if (varies) results_vary(target, call, result);
  return result;
}

void Recorder::note_hook(PyObject* tensor) {
  const Tracked* tracked = is_tensor(tensor) ? tracked_.find(tensor) : nullptr;
  if (tracked != nullptr && tracked->kind == Tracked::Kind::node) {
    hooked_.push_back(tracked->node->id());
  }
}

bool Recorder::has_open_size(PyObject* object) {
  const Tracked* tracked = is_tensor(object) ? tracked_.find(object) : nullptr;
  return tracked != nullptr && tracked->has_open_size;
}

std::vector<PyObject*> Recorder::untracked_tensors(PyObject* result) {
  std::vector<PyObject*> found;
  const auto add = [&](PyObject* item) {
    if (is_tensor(item) && tracked_.find(item) == nullptr) found.push_back(item);
  };
  add(result);
  for (Py_ssize_t i = 0; PyTuple_Check(result) && i < PyTuple_GET_SIZE(result); ++i) {
    add(PyTuple_GET_ITEM(result, i));
  }
  return found;
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
  if ((text == "shape" || text == "ndim" || text == "nbytes") && has_open_size(tensor)) {
    return plainly("the '" + text + "' of a tensor follows from values");
  }
  if (has_varying_size(tensor)) {
    if (text == "shape") return made(a, sizes_of(tensor), "the shape of a tensor");
    if (text == "nbytes") fix_all_sizes("nbytes");
  }
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
    // backward() ends a segment: what was made in this one has no gradient yet.
    if (text == "grad" && tracked->kind == Tracked::Kind::node &&
        !tensor_of(tensor).requires_grad() && !tensor_of(tensor).grad().defined()) {
      return Py_NewRef(Py_None);
    }
    if (text == "data" && tracked->varying == 0) {
      // Unlike x.data, x.detach() counts what is changed through it: backward refuses to use it.
      static PyObject* const detach =
          PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type()), "detach");
      PyObject* args[] = {nullptr, tensor};
      return call_tensor_function(a, "detach", true, {detach, args + 1, 1, nullptr});
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

}  // namespace assay::capture
