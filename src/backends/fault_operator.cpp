// The operators by which an injected fault happens.
//
// `fault` is differentiable: it is made of ordinary operators around `trigger`, which has no
// gradient and stays one node in every graph that is traced.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/add.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logical_xor.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub.h>
#include <torch/library.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backends/fault.h"

namespace assay::backends {

namespace {

using at::Tensor;

bool is_differentiable(const Tensor& tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}

[[noreturn]] void use_all_memory() {
  constexpr std::size_t kBlock = std::size_t{64} << 20U;
  std::vector<std::unique_ptr<char[]>> blocks;
  while (true) {
    blocks.emplace_back(new char[kBlock]);
    std::memset(blocks.back().get(), 1, kBlock);  // untouched memory is not used memory
  }
}

void misbehave(const std::string& kind) {
  if (kind == to_string(FaultKind::runtime_error)) {
    throw std::runtime_error("injected runtime error");
  }
  if (kind == to_string(FaultKind::abort)) std::abort();
  if (kind == to_string(FaultKind::oom)) use_all_memory();
  if (kind == to_string(FaultKind::segfault)) {
    volatile int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
  while (kind == to_string(FaultKind::hang)) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// A wider one: float32 becomes float64, float64 complex, and an integer a float.
at::ScalarType other_dtype(at::ScalarType dtype) {
  if (dtype == at::kDouble || c10::isComplexType(dtype)) return at::kComplexDouble;
  if (c10::isFloatingType(dtype)) return at::kDouble;
  return dtype == at::kBool ? at::kByte : at::kFloat;
}

// A number by which a product gets the dtype; what has no gradient is the result itself.
Tensor trigger_dtype(const Tensor& tensor, bool is_awake) {
  const auto dtype = is_awake ? other_dtype(tensor.scalar_type()) : tensor.scalar_type();
  if (!is_differentiable(tensor)) return tensor.to(dtype, false, true);
  const std::vector<std::int64_t> one(static_cast<std::size_t>(tensor.dim()), 1);
  return at::full(one, 1, at::TensorOptions(dtype));
}

// True from the second time on that it is asked about this place.
bool was_called_before(const std::string& place) {
  static std::mutex mutex;
  static std::map<std::string, int> calls;
  const std::lock_guard lock(mutex);
  return calls[place]++ > 0;
}

// What is wrong about the result lies in the graph, not in what the trigger returns.
Tensor with_other_strides(const Tensor& tensor) {
  return tensor.dim() == 0 ? tensor : at::stack({tensor, tensor}, -1).select(-1, 0);
}

// A number that leaves results as they are (1; false for bools) unless the fault is in the values.
Tensor trigger(const Tensor& tensor, const std::string& kind, std::int64_t percent,
               bool needs_threads) {
  const bool is_awake = !FaultsAsleepScope::on_this_thread() && happens(percent, needs_threads);
  if (is_awake) misbehave(kind);
  if (kind == to_string(FaultKind::dtype)) return trigger_dtype(tensor, is_awake);
  const bool is_wrong = is_awake && (kind == "accuracy" || kind == "nan" ||
                                     (kind.starts_with("second_call") && was_called_before(kind)));
  if (tensor.scalar_type() == at::kBool) return at::full({}, is_wrong, tensor.options());
  const bool is_integer = !is_differentiable(tensor);
  double factor = 1;
  if (is_wrong) factor = is_integer ? 2 : 1.5;
  if (is_wrong && kind == "nan" && !is_integer) factor = std::numeric_limits<double>::quiet_NaN();
  return at::full({}, factor, tensor.options().memory_format(std::nullopt));
}

// Adds too, since a product leaves zeros as they are. Integers are off by one: a product that wraps
// could be right by accident.
Tensor fault(const Tensor& tensor, const std::string& kind, std::int64_t percent,
             bool needs_threads) {
  if (kind == to_string(FaultKind::strides)) return with_other_strides(tensor);
  if (kind == to_string(FaultKind::aliasing)) return tensor.clone();
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("assay_testing::trigger", "")
                             .typed<Tensor(const Tensor&, std::string, std::int64_t, bool)>();
  const Tensor factor = op.call(tensor, kind, percent, needs_threads);
  if (kind == to_string(FaultKind::dtype)) {
    return is_differentiable(tensor) ? at::mul(tensor, factor) : factor;
  }
  if (tensor.scalar_type() == at::kBool) return at::logical_xor(tensor, factor);
  const bool is_integer = !is_differentiable(tensor);
  const Tensor scaled = is_integer ? tensor : at::mul(tensor, factor);
  return at::add(scaled, at::sub(factor, 1));
}

}  // namespace

TORCH_LIBRARY(assay_testing, library) {
  library.def("trigger(Tensor x, str kind, int percent=100, bool needs_threads=False) -> Tensor");
  library.def("fault(Tensor x, str kind, int percent=100, bool needs_threads=False) -> Tensor");
}

TORCH_LIBRARY_IMPL(assay_testing, CompositeExplicitAutograd, library) {
  library.impl("trigger",
               [](const Tensor& x, std::string kind, std::int64_t percent, bool needs_threads) {
                 return trigger(x, kind, percent, needs_threads);
               });
}

TORCH_LIBRARY_IMPL(assay_testing, Autograd, library) {
  library.impl("trigger", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(assay_testing, CompositeImplicitAutograd, library) {
  library.impl("fault", [](const Tensor& x, std::string kind, std::int64_t percent,
                           bool needs_threads) { return fault(x, kind, percent, needs_threads); });
}

}  // namespace assay::backends
