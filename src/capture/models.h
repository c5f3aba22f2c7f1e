/// \file Models of what is written in C: builtin functions and types, torch's functions that are
/// not operators, and attributes of builtin objects. Whatever has no model ends the segment. A
/// model does what the function does, on real objects, and tells the recorder what that meant.
#pragma once

#include <string_view>

#include "capture/recorder.h"

namespace assay::capture {

/// Makes the call: a new reference, or null with an exception set. A model that does not know these
/// arguments returns `recorder.call_plainly(...)`.
using Model = PyObject* (*)(Recorder& recorder, Activation& a, const Call& call);

/// The model of a callable, or null. Functions of a table are found by identity, methods of builtin
/// types by their descriptor.
Model find_model(PyObject* callable);

/// What a model does with the sizes of its arguments where these may be others in later calls.
enum class SizeUse {
  follows,  ///< Passes numbers and tensors on, or looks at them through the recorder.
  numbers,  ///< Looks at numbers, passes tensors on.
  all,      ///< Looks at both.
};
SizeUse size_use_of(PyObject* callable);

/// The object with a dotted name, or null: `builtins.list.append`.
Ref find_by_name(std::string_view name);

/// Makes the tables. To be called before anything is recorded: it imports modules.
void prepare_models();

/// What a tensor function is called in a graph, or nothing: a function of torch, a method of
/// Tensor.
struct GraphFunction {
  graph::Target target;
  bool is_method;
};
const GraphFunction* find_graph_function(PyObject* callable);
/// What a graph calls a comparison: Py_LT -> "operator.lt".
const char* comparison_function(int op);

/// The dict behind a types.MappingProxyType, or null; `mapping_behind` guards that it is this one.
PyObject* mapping_of_proxy(PyObject* object);
PyObject* mapping_behind(Recorder& recorder, PyObject* object);

// Attributes that are not in a __dict__: of functions, methods, super(), C descriptors.
PyObject* special_attribute(Recorder& recorder, Activation& a, PyObject* object, PyObject* name);
/// Of types, modules and tensors.
bool set_special_attribute(Recorder& recorder, Activation& a, PyObject* object, PyObject* name,
                           PyObject* value);
/// As object.__setattr__ does; no value: __delattr__.
bool set_plain_attribute(Recorder& recorder, Activation& a, PyObject* object, PyObject* name,
                         PyObject* value);

}  // namespace assay::capture
