#include "guards/global_state.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace assay::guards {

GlobalState GlobalState::current() {
  GlobalState state;
  state.grad_mode = c10::GradMode::is_enabled();
  state.inference_mode = c10::InferenceMode::is_enabled();
  state.deterministic = at::globalContext().deterministicAlgorithms();
  // What at::autocast::is_autocast_enabled asks, for all devices at once.
  const c10::DispatchKeySet enabled =
      c10::autocast_dispatch_keyset - c10::impl::tls_local_dispatch_key_set().excluded_;
  state.autocast = enabled.has(c10::DispatchKey::AutocastCPU);
  state.autocast_devices = enabled.raw_repr();
  state.autocast_dtype = at::autocast::get_autocast_dtype(at::kCPU);
  state.autocast_cache = at::autocast::is_autocast_cache_enabled();
  state.autocast_cuda_dtype = at::autocast::get_autocast_dtype(at::kCUDA);
  state.cudnn = at::globalContext().userEnabledCuDNN();
  state.default_dtype = c10::get_default_dtype_as_scalartype();
  return state;
}

std::string GlobalState::difference(const GlobalState& now) const {
  if (now.grad_mode != grad_mode) return "grad mode changed";
  if (now.inference_mode != inference_mode) return "inference mode changed";
  if (now.autocast != autocast || now.autocast_dtype != autocast_dtype) return "autocast changed";
  if (now.autocast_cache != autocast_cache) return "the setting of autocast's cache changed";
  if (now.autocast_devices != autocast_devices || now.autocast_cuda_dtype != autocast_cuda_dtype) {
    return "autocast of another device changed";
  }
  if (now.cudnn != cudnn) return "the setting of cuDNN changed";
  if (now.default_dtype != default_dtype) return "the default dtype changed";
  if (now.deterministic != deterministic) return "the setting of deterministic algorithms changed";
  return "";
}

}  // namespace assay::guards
