// Custom operators that do not do what their schemas say.
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace {

using at::Tensor;

Tensor writes(const Tensor& x, const Tensor& y) {
  const_cast<Tensor&>(x).mul_(2);
  return y.clone();
}

Tensor aliases(const Tensor& /*x*/, const Tensor& y) { return y.view({-1}); }

Tensor honest(Tensor& x) { return x.mul_(2); }

// Other strides at every second call.
Tensor moody(const Tensor& x) {
  static bool is_transposed = true;
  is_transposed = !is_transposed;
  return is_transposed ? x.t().contiguous().t() : x.clone();
}

}  // namespace

TORCH_LIBRARY(assay_lying, library) {
  library.def("writes(Tensor x, Tensor y) -> Tensor");
  library.def("aliases(Tensor x, Tensor y) -> Tensor");
  library.def("honest(Tensor(a!) x) -> Tensor(a!)");
  library.def("moody(Tensor x) -> Tensor");
}

TORCH_LIBRARY_IMPL(assay_lying, CPU, library) {
  library.impl("writes", &writes);
  library.impl("aliases", &aliases);
  library.impl("honest", [](Tensor x) { return honest(x); });
  library.impl("moody", &moody);
}
