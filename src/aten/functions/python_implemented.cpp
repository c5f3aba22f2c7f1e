// The names that PyTorch implements in Python although an operator has the same name. Made by
// tools/python_functions.py with torch 2.13; a test runs it again and compares.
#include <algorithm>
#include <array>
#include <string_view>

#include "aten/torch_functions.h"

namespace assay::aten {

namespace {

// Functions of `torch` and `torch.functional`, sorted.
constexpr auto kPythonFunctions = std::to_array<std::string_view>({
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "meshgrid",
    "norm",
    "split",
    "stft",
    "tensordot",
    "unique_consecutive",
});

// Methods of torch.Tensor, sorted.
constexpr auto kPythonMethods = std::to_array<std::string_view>({
    "index",
    "istft",
    "norm",
    "resize",
    "resize_as",
    "split",
    "stft",
    "unflatten",
    "unique_consecutive",
});

static_assert(std::ranges::is_sorted(kPythonFunctions));
static_assert(std::ranges::is_sorted(kPythonMethods));

}  // namespace

bool is_python_function(std::string_view name) {
  constexpr std::string_view kTensor = "torch.Tensor.";
  if (name.starts_with(kTensor)) return is_python_method(name.substr(kTensor.size()));
  for (const std::string_view module : {"torch.functional.", "torch."}) {
    if (name.starts_with(module)) {
      return std::ranges::binary_search(kPythonFunctions, name.substr(module.size()));
    }
  }
  return false;
}

bool is_python_method(std::string_view name) {
  return std::ranges::binary_search(kPythonMethods, name);
}

}  // namespace assay::aten
