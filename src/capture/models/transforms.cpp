// Functions of torch that take functions of the program: transforms (torch.func), control flow, and
// checkpoints.
#include <string>
#include <vector>

#include "capture/code_facts.h"
#include "capture/hook.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

// One call in the graph. torch's own code runs as it is; what it calls back, with tensors that it
// may have wrapped, is followed. Such a graph cannot be compiled ahead of time: where it may end,
// what stands around the call is compiled without it.
PyObject* as_one(Recorder& recorder, Activation& a, const Call& call) {
  if (recorder.prefers_breaks()) {
    return recorder.call_plainly(a, call, "a function of torch that calls back, ahead of time");
  }
  // The first gradient imports it, which is not the program's doing.
  static const bool is_imported = [] {
    const NativeFramesScope natively;
    Py_XDECREF(import_module("torch._dynamo"));
    return PyErr_Occurred() == nullptr;
  }();
  if (!is_imported) PyErr_Clear();
  return recorder.call_as_one(a, call, nullptr, Recorder::Followed::what_it_calls_back);
}

// In eager, these are compiled by stock's compiler each time: what they compute is done by a
// function of ours.
template <const char* name>
PyObject* our_function(Recorder& recorder) {
  static PyObject* const function = [&]() -> PyObject* {
    const SuspendScope not_followed(recorder);
    const Ref module = Ref::steal(import_module("assay._higher_order"));
    return module ? PyObject_GetAttrString(module.get(), name) : nullptr;
  }();
  if (function != nullptr) recorder.is_constant(function);
  return function;
}

// PyTorch's own refuse programs that ours accept: it is called where a break is allowed.
bool is_refused(Recorder& recorder, const Call& call) {
  return !recorder.allows_no_break() && PyFunction_Check(call.callable) &&
         is_library_code(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(call.callable))) &&
         !is_code_of_ours(reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(call.callable)));
}

template <const char* name>
PyObject* control_flow(Recorder& recorder, Activation& a, const Call& call) {
  if (is_refused(recorder, call)) {
    return recorder.call_plainly(a, call, "control flow that PyTorch compiles by itself");
  }
  PyObject* const function = our_function<name>(recorder);
  if (function == nullptr) return nullptr;
  return as_one(recorder, a, {function, call.args, call.count, call.names});
}

constexpr char kWhileLoopOperator[] = "while_loop_operator";
constexpr char kMapOperator[] = "map_operator";
constexpr char kScanOperator[] = "scan_operator";
constexpr char kWhileLoop[] = "while_loop";
constexpr char kRegisterHook[] = "register_hook";
constexpr char kMap[] = "map";
constexpr char kScan[] = "scan";
constexpr char kCond[] = "cond";

// torch.cond: of a number or a truth, the function that it chooses.
PyObject* cond(Recorder& recorder, Activation& a, const Call& call) {
  const bool is_known = call.positional() >= 3 && is_scalar(call.args[0]);
  if (!is_known) return control_flow<kCond>(recorder, a, call);
  const int truth = PyObject_IsTrue(call.args[0]);
  if (truth < 0) return nullptr;
  PyObject* const chosen = call.args[truth == 1 ? 1 : 2];
  if (call.count == 3) return recorder.call_object(a, {chosen, call.args + 3, 0, nullptr});
  const Ref operands = items_of(recorder, a, call.args[3]);
  if (!operands) return nullptr;
  if (!recorder.is_recording())
    return PyObject_Vectorcall(call.callable, call.args, call.positional(), call.names);
  std::vector<PyObject*> items = {nullptr};
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(operands.get()); ++i) {
    items.push_back(PyList_GET_ITEM(operands.get(), i));
  }
  return recorder.call_object(a, {chosen, items.data() + 1, items.size() - 1, nullptr});
}

// A function that is called with the gradient, some day: it may not share variables with the
// program, which both could change until then.
bool is_independent(Recorder& recorder, PyObject* hook) {
  if (!PyFunction_Check(hook)) return false;
  const Tracked* tracked = recorder.find(hook);
  return (tracked != nullptr && tracked->source != nullptr) ||
         reinterpret_cast<PyFunctionObject*>(hook)->func_closure == nullptr;
}

// Each run registers it with its own tensor, which is new: that of another one would have the hook
// twice if the graph raised later, and the program ran instead. The handle cannot be kept.
PyObject* register_hook(Recorder& recorder, Activation& a, const Call& call) {
  const bool is_plain = call.count == 2 && call.names == nullptr && is_plain_tensor(call.args[0]) &&
                        recorder.touch(call.args[0]) && recorder.touch(call.args[1]) &&
                        tensor_of(call.args[0]).requires_grad() &&
                        recorder.find(call.args[0])->kind == Tracked::Kind::node &&
                        is_independent(recorder, call.args[1]);
  if (!is_plain || recorder.prefers_breaks()) {
    if (call.count > 0) recorder.note_hook(call.args[0]);
    return recorder.call_plainly(a, call, "a hook that is not modelled");
  }
  PyObject* const function = our_function<kRegisterHook>(recorder);
  if (function == nullptr) return nullptr;
  const Ref done = Ref::steal(recorder.call_as_one(a, {function, call.args, call.count, nullptr},
                                                   nullptr, Recorder::Followed::nothing));
  PyObject* handle = done ? PyObject_GetAttrString(function, "handle") : nullptr;
  if (handle != nullptr) PyObject_SetAttrString(function, "handle", Py_None);
  return handle;
}

// The function's calls become the graph's. What autograd saves for backward, and computes again, is
// up to who compiles the graph.
PyObject* checkpoint(Recorder& recorder, Activation& a, const Call& call) {
  bool is_plain = false;
  for (std::size_t i = call.positional(); i < call.count; ++i) {
    const std::string name =
        to_string(PyTuple_GET_ITEM(call.names, static_cast<Py_ssize_t>(i - call.positional())));
    if (name == "use_reentrant") is_plain = call.args[i] == Py_False;
    if (name == "context_fn" || name == "debug") {
      return recorder.call_plainly(a, call, "a checkpoint with a context or debugging");
    }
  }
  if (!is_plain || call.positional() == 0) {
    return recorder.call_plainly(a, call, "a reentrant checkpoint");
  }
  std::vector<PyObject*> args(call.args, call.args + call.count);
  args.insert(args.begin(), nullptr);
  Ref caller;  // of a single operator, so that the call is seen
  if (find_graph_function(call.args[0]) != nullptr) {
    caller = followed(recorder, call.args[0]);
    if (!caller) return nullptr;
    args[1] = caller.get();
  }
  // Without torch._disable_dynamo.
  static PyObject* const function = PyObject_GetAttrString(call.callable, "__wrapped__");
  if (function == nullptr) return nullptr;
  return recorder.call_around(a, {function, args.data() + 1, call.count, call.names});
}

}  // namespace

ModelTable transform_models() {
  return {
      {"torch._functorch.vmap.vmap_impl", as_one},
      {"torch._functorch.eager_transforms.grad_impl", as_one},
      {"torch._functorch.eager_transforms.grad_and_value_impl", as_one},
      {"torch._functorch.eager_transforms.jvp", as_one},
      {"torch._functorch.eager_transforms.jacrev.<locals>.wrapper_fn", as_one},
      {"torch._functorch.eager_transforms.jacfwd.<locals>.wrapper_fn", as_one},
      {"torch._functorch.eager_transforms.functionalize.<locals>.wrapped", as_one},
      {"torch._higher_order_ops.cond.cond_op", cond},
      {"torch._higher_order_ops.while_loop.while_loop_op", control_flow<kWhileLoopOperator>},
      {"torch._higher_order_ops.map.map_impl", control_flow<kMapOperator>},
      {"torch._higher_order_ops.scan.scan_op", control_flow<kScanOperator>},
      {"torch.cond", cond},
      {"assay._higher_order.cond", cond},
      {"assay._higher_order.while_loop", control_flow<kWhileLoop>},
      {"assay._higher_order.map", control_flow<kMap>},
      {"assay._higher_order.scan", control_flow<kScan>},
      {"torch.while_loop", control_flow<kWhileLoop>},
      {"torch._higher_order_ops.map", control_flow<kMap>},
      {"torch._higher_order_ops.scan", control_flow<kScan>},
      {"torch.utils.checkpoint.checkpoint", checkpoint},
      {"torch.Tensor.register_hook", register_hook},
  };
}

}  // namespace assay::capture
