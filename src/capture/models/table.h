/// \file The tables of models, one per family of functions; models.cpp puts them together.
#pragma once

#include <initializer_list>
#include <vector>

#include "capture/models.h"

namespace assay::capture {

struct ModelRow {
  const char* name;  ///< Dotted: `builtins.len`, `builtins.list.append`, `math.sqrt`.
  Model model;
};

using ModelTable = std::vector<ModelRow>;

ModelTable builtin_models();        ///< builtins.cpp: isinstance, getattr, super, iter, ...
ModelTable container_models();      ///< containers.cpp: list, dict, set, tuple and their methods
ModelTable value_models();          ///< values.cpp: functions of numbers and strings
ModelTable introspection_models();  ///< introspection.cpp: callable, inspect.signature
ModelTable library_models();  ///< library.cpp: functools, itertools, collections, operator, ...
ModelTable copying_models();  ///< copying.cpp: copy.copy, copy.deepcopy
ModelTable context_models();  ///< contexts.cpp: torch's context managers
ModelTable torch_models();    ///< torch.cpp: torch's functions that are not operators

/// For models of functions that only compute from their arguments.
PyObject* pure_model(Recorder& recorder, Activation& a, const Call& call);

}  // namespace assay::capture
