// Functions of torch that are not operators: modes, questions about tensors and about the state.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <string>
#include <vector>

#include "capture/code_facts.h"
#include "capture/models/table.h"
#include "capture/torch_types.h"

namespace assay::capture {

namespace {

PyObject* set_grad_enabled(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 1 || !PyBool_Check(call.args[0])) {
    return recorder.call_plainly(a, call, "torch._C._set_grad_enabled with another argument");
  }
  return recorder.set_grad_mode(a, call.args[0] == Py_True) ? Py_NewRef(Py_None) : nullptr;
}

// Libraries choose their path by it: what is captured is being compiled.
PyObject* is_compiling(Recorder&, Activation&, const Call&) { return truth(true); }

// torch's optimizers break the graph around a change of the grad mode, for a compiler that could
// not have it inside. It is recorded here.
PyObject* graph_break(Recorder& recorder, Activation& a, const Call& call) {
  if (is_code_of_optimizers(a.code)) return Py_NewRef(Py_None);
  return recorder.call_plainly(a, call, "'assay.graph_break' is marked to be run eagerly");
}

// torch._check(condition, message): what holds is guarded; else it raises.
PyObject* check(Recorder& recorder, Activation& a, const Call& call) {
  if (call.positional() == 0 || !PyBool_Check(call.args[0])) return recorder.call_watched(a, call);
  const int holds = recorder.is_true(a, {call.args[0], nullptr});
  if (holds < 0) return nullptr;
  return holds == 1 ? Py_NewRef(Py_None) : recorder.call_watched(a, call);
}

// Follows from the global state, which is guarded, or never changes.
PyObject* state(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) recorder.touch(call.args[i]);
  return recorder.made(a, recorder.call_watched(a, call), "a question about the state");
}

// The dtypes of other devices are not guarded.
PyObject* autocast_dtype(Recorder& recorder, Activation& a, const Call& call) {
  const bool is_guarded = call.count == 1 && PyUnicode_Check(call.args[0]) &&
                          (PyUnicode_CompareWithASCIIString(call.args[0], "cpu") == 0 ||
                           PyUnicode_CompareWithASCIIString(call.args[0], "cuda") == 0);
  if (!is_guarded) return recorder.call_plainly(a, call, "autocast's dtype of another device");
  return state(recorder, a, call);
}

// Plain tensors have no __torch_function__ of their own; others end the segment elsewhere.
PyObject* has_torch_function(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (!recorder.know_all(call.args[i])) {
      if (!recorder.touch(call.args[i])) {
        return recorder.call_plainly(a, call, "has_torch_function() of an unknown object");
      }
    }
  }
  return recorder.call_watched(a, call);
}

// Follows from a state that is asked for again with every call.
PyObject* question(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (recorder.touch(call.args[i])) recorder.guard_identity(call.args[i]);
  }
  return recorder.call_question(a, call);
}

// x.addcdiv_(a, b, value=v): torch takes the number out of a tensor v, which a graph cannot. It
// computes with the tensor.
template <const char* combine, bool in_place>
PyObject* add_combined(Recorder& recorder, Activation& a, const Call& call) {
  const std::string name = std::string("addc") + combine + (in_place ? "_" : "");
  const bool has_tensor = call.count == 4 && call.positional() == 3 && is_tensor(call.args[3]);
  if (!has_tensor) return recorder.call_tensor_function(a, name, true, call);
  const auto compute = [&](const char* method, PyObject* left, PyObject* right) {
    const Ref text = Ref::steal(PyUnicode_InternFromString(method));
    PyObject* descriptor = recorder.lookup_on_type(tensor_type(), text.get());
    PyObject* args[] = {nullptr, left, right};
    return Ref::steal(
        recorder.call_tensor_function(a, method, true, {descriptor, args + 1, 2, nullptr}));
  };
  const Ref combined = compute(combine, call.args[1], call.args[2]);
  const Ref scaled = combined ? compute("mul", combined.get(), call.args[3]) : Ref();
  if (!scaled) return nullptr;
  return compute(in_place ? "add_" : "add", call.args[0], scaled.get()).release();
}
constexpr char kDiv[] = "div";
constexpr char kMul[] = "mul";

// Functions of dtypes; they make tensors of these to find out.
PyObject* of_dtypes(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (!recorder.know_all(call.args[i]) || is_tensor(call.args[i])) {
      return recorder.call_plainly(a, call, "a question about an unknown dtype");
    }
  }
  return recorder.made(a, recorder.call_unseen(call), "a question about dtypes");
}

// Questions about a tensor that its guards answer.
PyObject* metadata(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (is_tensor(call.args[i]) && !is_plain_tensor(call.args[i])) {
      return recorder.call_plainly(a, call, "a question about a tensor subclass");
    }
    if (!recorder.know_all(call.args[i])) {
      return recorder.call_plainly(a, call, "a question about an unknown object");
    }
    if (recorder.has_open_size(call.args[i])) {
      return recorder.call_plainly(a, call, "the size of a tensor follows from values");
    }
  }
  return recorder.made(a, recorder.call_watched(a, call), "a question about a tensor");
}

// x.type() is the name of its dtype; x.type(other) converts to a dtype, also by the name or class
// of its tensors.
PyObject* tensor_type_method(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count == 1) return metadata(recorder, a, call);
  std::vector<PyObject*> args(call.args, call.args + call.count);
  args.insert(args.begin(), nullptr);
  Ref dtype;
  if (call.count > 1 && std::string_view(Py_TYPE(args[2])->tp_name) == "torch.tensortype") {
    const Ref is_cuda = Ref::steal(PyObject_GetAttrString(args[2], "is_cuda"));
    dtype = Ref::steal(PyObject_GetAttrString(args[2], "dtype"));
    if (!is_cuda || !dtype) return nullptr;
    if (is_cuda.get() == Py_True) return recorder.call_plainly(a, call, "a tensor of a device");
    recorder.is_constant(args[2]);
    args[2] = dtype.get();
  }
  return recorder.call_tensor_function(a, "type", true,
                                       {call.callable, args.data() + 1, call.count, call.names});
}

// torch.finfo, torch.iinfo, torch.device: objects that are values.
PyObject* make_value(Recorder& recorder, Activation& a, const Call& call) {
  for (std::size_t i = 0; i < call.count; ++i) {
    if (!recorder.know_all(call.args[i])) {
      return recorder.call_plainly(a, call, "a call with an unknown object");
    }
  }
  PyObject* made = recorder.call_watched(a, call);
  if (made != nullptr && recorder.is_recording() && recorder.find(made) == nullptr) {
    recorder.is_constant(made);
  }
  return made;
}

PyObject* nothing(Recorder& recorder, Activation& a, const Call& call) {
  return recorder.call_watched(a, call);
}

// types.ModuleType.__getattribute__(module, name), as torch.backends calls it for its flags.
PyObject* module_getattribute(Recorder& recorder, Activation& a, const Call& call) {
  if (call.count != 2 || !PyModule_CheckExact(call.args[0]) || !PyUnicode_Check(call.args[1])) {
    return recorder.call_plainly(a, call, "an attribute of a module that is not modelled");
  }
  return recorder.get_attribute(a, call.args[0], call.args[1]);
}

// Once stock's compiler is loaded, it notes every module that is created, for its own use only: for
// a module that a replay creates it does not matter.
PyObject* unseen(Recorder& recorder, Activation&, const Call& call) {
  const SuspendScope not_followed(recorder);
  return PyObject_Vectorcall(call.callable, call.args, call.positional(), call.names);
}

// As unittest's assertRaises does it to an exception: a replay has no frames that hold anything.
PyObject* clear_frames(Recorder& recorder, Activation& a, const Call& call) {
  const bool is_of_traceback = call.count == 1 && PyTraceBack_Check(call.args[0]);
  if (!is_of_traceback) return recorder.call_plainly(a, call, "frames of another object");
  return unseen(recorder, a, call);
}

}  // namespace

ModelTable torch_models() {
  return {
      {"torch._C._set_grad_enabled", set_grad_enabled},
      {"torch._check", check},
      {"torch.compiler.is_compiling", is_compiling},
      {"torch.compiler.is_dynamo_compiling", is_compiling},
      {"torch._dynamo.external_utils.is_compiling", is_compiling},
      {"torch._dynamo.mutation_guard.GenerationTracker.tag", unseen},
      {"traceback.clear_frames", clear_frames},
      {"torch._utils.is_compiling", is_compiling},
      {"assay.is_compiling", is_compiling},
      {"assay.graph_break", graph_break},
      {"torch._dynamo.decorators.graph_break", graph_break},
      {"torch.is_grad_enabled", state},
      {"torch._C.is_grad_enabled", state},
      {"torch.is_inference_mode_enabled", state},
      {"torch.get_default_dtype", state},
      {"torch.is_autocast_enabled", state},
      {"torch.is_autocast_cpu_enabled", state},
      {"torch._C._is_any_autocast_enabled", state},
      {"torch.get_autocast_dtype", autocast_dtype},
      {"torch.get_autocast_cpu_dtype", state},
      {"torch.is_autocast_cache_enabled", state},
      {"torch._C._get_tracing_state", state},
      {"torch._C._is_tracing", state},
      {"torch._C._get_cudnn_enabled", question},
      {"torch._C._get_cudnn_benchmark", question},
      {"torch._C._get_cudnn_deterministic", question},
      {"torch._C._get_cudnn_allow_tf32", question},
      {"torch._C._get_cublas_allow_tf32", question},
      {"torch._C._get_mkldnn_enabled", question},
      {"torch._C._get_mkldnn_deterministic", question},
      {"torch._C._get_nnpack_enabled", question},
      {"torch._C._get_flash_sdp_enabled", question},
      {"torch._C._get_mem_efficient_sdp_enabled", question},
      {"torch._C._get_math_sdp_enabled", question},
      {"torch._C._get_cudnn_sdp_enabled", question},
      {"torch._C._get_overrideable_sdp_enabled", question},
      {"torch._C._get_float32_matmul_precision", question},
      {"torch._C._has_mkldnn", state},
      {"torch._C._get_default_device", question},
      {"torch._C._autograd._profiler_enabled", question},
      {"torch._C._autograd._saved_tensors_hooks_is_enabled", question},
      {"torch._C._autograd._saved_tensors_hooks_get_disabled_error_message", question},
      {"torch._C._ImperativeEngine.is_checkpoint_valid", question},
      {"assay._route_config.RoutedConfig.__getattr__", question},
      {"torch.get_num_threads", question},
      {"torch.get_num_interop_threads", question},
      {"torch.is_anomaly_enabled", question},
      {"torch.is_anomaly_check_nan_enabled", question},
      {"torch._C._get_warnAlways", question},
      {"torch._C._get_deterministic_fill_uninitialized_memory", question},
      {"torch.is_deterministic_algorithms_warn_only_enabled", question},
      {"torch._C._get_deterministic_algorithms_warn_only", question},
      {"sys.getrecursionlimit", question},
      {"gc.isenabled", question},
      {"os.cpu_count", question},
      {"torch._C._is_torch_function_enabled", state},
      {"torch._C._is_torch_function_mode_enabled", state},
      {"torch._C._len_torch_dispatch_stack", state},
      {"torch._C._len_torch_function_stack", state},
      {"torch._C._functorch.peek_interpreter_stack", state},
      {"torch._C._functorch.maybe_current_level", state},
      {"torch._C._are_functorch_transforms_active", state},
      {"types.ModuleType.__getattribute__", module_getattribute},
      {"torch.are_deterministic_algorithms_enabled", state},
      {"torch._C._get_deterministic_algorithms", state},
      {"torch._C._has_torch_function", has_torch_function},
      {"torch._C._has_torch_function_unary", has_torch_function},
      {"torch._C._has_torch_function_variadic", has_torch_function},
      {"torch._C._log_api_usage_once", nothing},
      {"torch._C._get_privateuse1_backend_name", state},
      {"torch._C._is_autocast_available", state},
      {"torch.cuda.is_available", state},
      {"torch._C._jit_is_scripting", state},
      {"torch.finfo", make_value},
      {"torch.iinfo", make_value},
      {"torch.device", make_value},
      {"torch.Size", metadata},
      {"torch.is_floating_point", metadata},
      {"torch.is_complex", metadata},
      {"torch.is_signed", metadata},
      {"torch.numel", metadata},
      {"torch.result_type", metadata},
      {"torch.promote_types", of_dtypes},
      {"torch.can_cast", of_dtypes},
      {"torch.is_same_size", metadata},
      {"torch._C._group_tensors_by_device_and_dtype", metadata},
      {"torch.is_storage", metadata},
      {"torch.Tensor.size", metadata},
      {"torch.Tensor.dim", metadata},
      {"torch.Tensor.ndimension", metadata},
      {"torch.Tensor.numel", metadata},
      {"torch.Tensor.nelement", metadata},
      {"torch.Tensor.stride", metadata},
      {"torch.Tensor.is_contiguous", metadata},
      {"torch.Tensor.element_size", metadata},
      {"torch.Tensor.is_floating_point", metadata},
      {"torch.Tensor.is_complex", metadata},
      {"torch.Tensor.is_signed", metadata},
      {"torch.Tensor.get_device", metadata},
      {"torch.Tensor.is_same_size", metadata},
      {"torch.Tensor.is_inference", metadata},
      {"torch.Tensor.is_conj", metadata},
      {"torch.Tensor.is_neg", metadata},
      {"torch.is_conj", metadata},
      {"torch.is_neg", metadata},
      {"torch.Tensor.__len__", metadata},
      {"torch.Tensor.type", tensor_type_method},
      {"torch.Tensor.addcdiv", add_combined<kDiv, false>},
      {"torch.Tensor.addcdiv_", add_combined<kDiv, true>},
      {"torch.Tensor.addcmul", add_combined<kMul, false>},
      {"torch.Tensor.addcmul_", add_combined<kMul, true>},
  };
}

}  // namespace assay::capture
