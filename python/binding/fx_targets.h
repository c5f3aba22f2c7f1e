/// \file The Python callables behind the names of targets, both ways: `torch.relu` the function and
/// `torch.relu` the target. For fx_graph.cpp. The GIL must be held.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <string>

#include "graph/target.h"

namespace assay::binding {

/// The target that names a callable. What cannot be imported is given a name in `assay.fx.objects`.
graph::Target target_of(pybind11::handle callable);

/// The qualified name of any other object that has one: a class, an enum's value, a qscheme. Throws
/// `UserError` if it has none.
std::string qualified_name_of(pybind11::handle object);

/// The object of that name: `object_named(target_of(f).name())` is `f`. Throws `UserError` if there
/// is none.
pybind11::object object_named(const std::string& name);
pybind11::object callable_of(const graph::Target& target);

}  // namespace assay::binding
