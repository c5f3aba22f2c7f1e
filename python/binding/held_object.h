/// \file Python objects that C++ holds where the GIL may not be held.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <utility>

namespace assay::binding {

/// May be copied and freed without the GIL. What is freed after Python has ended is left alone.
template <typename Object>
std::shared_ptr<const Object> hold(Object object) {
  return {new Object(std::move(object)), [](const Object* held) {
            if (Py_IsInitialized() == 0) return;
            const pybind11::gil_scoped_acquire gil;
            delete held;
          }};
}

}  // namespace assay::binding
