/// \file `assay._C.FastCall`, the base of `assay.aot.Compiled`: a call whose arguments are tensors
/// and numbers goes straight to the compiled function, any other to the method `call_slowly`.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace assay::binding {

void add_fast_call(pybind11::module_& module);

}  // namespace assay::binding
