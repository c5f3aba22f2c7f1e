// The names that PyTorch implements in Python although an operator has the same name. Made by
// tools/python_functions.py with torch 2.13; a test runs it again and compares.
#include <algorithm>
#include <array>
#include <string_view>

#include "aten/torch_functions.h"

namespace assay::aten {

namespace {

using std::string_view_literals::operator""sv;

// Functions of `torch` and `torch.functional`, sorted.
constexpr std::array kFunctions = {
    "atleast_1d"sv,     "atleast_2d"sv, "atleast_3d"sv,   "block_diag"sv, "broadcast_tensors"sv,
    "cartesian_prod"sv, "cdist"sv,      "chain_matmul"sv, "einsum"sv,     "meshgrid"sv,
    "norm"sv,           "split"sv,      "stft"sv,         "tensordot"sv,  "unique_consecutive"sv,
};

// Methods of torch.Tensor, sorted.
constexpr std::array kMethods = {
    "index"sv,  "istft"sv,     "norm"sv,
    "resize"sv, "resize_as"sv, "split"sv,
    "stft"sv,   "unflatten"sv, "unique_consecutive"sv,
};

static_assert(std::ranges::is_sorted(kFunctions));
static_assert(std::ranges::is_sorted(kMethods));

}  // namespace

bool is_python_function(std::string_view name) {
  for (const std::string_view module : {"torch.functional."sv, "torch.Tensor."sv, "torch."sv}) {
    if (!name.starts_with(module)) continue;
    const std::string_view rest = name.substr(module.size());
    return module == "torch.Tensor."sv ? is_python_method(rest)
                                       : std::ranges::binary_search(kFunctions, rest);
  }
  return false;
}

bool is_python_method(std::string_view name) { return std::ranges::binary_search(kMethods, name); }

}  // namespace assay::aten
