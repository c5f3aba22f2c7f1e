/// \file The tables of models, one per family of functions; models.cpp puts them together.
#pragma once

#include <initializer_list>
#include <vector>

#include "capture/models.h"

namespace assay::capture {

struct ModelRow {
  /// Dotted: `builtins.len`, `builtins.list.append`, `math.sqrt`; `module.f.<locals>.g` for what f
  /// defines in each of its calls.
  const char* name;
  Model model;
};

using ModelTable = std::vector<ModelRow>;

ModelTable builtin_models();        ///< builtins.cpp: isinstance, getattr, super, iter, ...
ModelTable container_models();      ///< containers.cpp: list, set, tuple and their methods
ModelTable dict_models();           ///< dicts.cpp: dict, OrderedDict and their methods
ModelTable collection_models();     ///< collections.cpp: deque, defaultdict, heapq
ModelTable exception_models();      ///< exceptions.cpp: exceptions as objects, sys.exc_info
ModelTable ordering_models();       ///< ordering.cpp: min, max, sorted, list.sort
ModelTable function_models();       ///< functions.cpp: partial, itemgetter, MethodType
ModelTable number_models();         ///< numbers.cpp: abs, round, range, str.join
ModelTable pattern_models();        ///< patterns.cpp: regular expressions
ModelTable value_models();          ///< values.cpp: functions of numbers and strings
ModelTable introspection_models();  ///< introspection.cpp: callable, inspect.signature
ModelTable library_models();    ///< library.cpp: functools, itertools, collections, operator, ...
ModelTable copying_models();    ///< copying.cpp: copy.copy, copy.deepcopy
ModelTable context_models();    ///< contexts.cpp: torch's context managers
ModelTable autograd_models();   ///< autograd.cpp: torch.autograd.Function
ModelTable transform_models();  ///< transforms.cpp: torch.func
ModelTable array_models();      ///< arrays.cpp: NumPy
ModelTable mapping_proxy_models();   ///< mapping_proxies.cpp: types.MappingProxyType
ModelTable special_method_models();  ///< special_methods.cpp: list.__iter__, deque.__getitem__
ModelTable torch_models();           ///< torch.cpp: torch's functions that are not operators

PyObject* truth(bool value);  ///< A new reference to True or False.
/// The items of any iterable as a new list of the segment; null with an exception set.
Ref items_of(Recorder& recorder, Activation& a, PyObject* iterable);
/// Whether str() of an exception is a text of known values.
bool has_known_text(Recorder& recorder, PyObject* exception);
/// A Python function that calls `callable`, for C code that calls back: its frame is followed. Null
/// with an exception set on failure.
Ref followed(Recorder& recorder, PyObject* callable);
/// Calls an operator.itemgetter, attrgetter or methodcaller.
PyObject* call_getter(Recorder& recorder, Activation& a, const Call& call);

/// list(iterable).
PyObject* make_list(Recorder& recorder, Activation& a, const Call& call);
/// Methods that change the contents of their object and need to know them.
PyObject* changes_contents(Recorder& recorder, Activation& a, const Call& call);
/// Methods that only read the contents.
PyObject* reads_contents(Recorder& recorder, Activation& a, const Call& call);
/// An operator or comparison of containers: NotImplemented for operands that it does not know.
PyObject* computes(Recorder& recorder, Activation& a, const Call& call);
/// Stores in a dict what another mapping or an iterable of pairs holds, as dict.update does. False
/// with an exception set.
bool store_all(Recorder& recorder, Activation& a, PyObject* dict, PyObject* other);

/// For models of functions that only compute from their arguments.
PyObject* pure_model(Recorder& recorder, Activation& a, const Call& call);

}  // namespace assay::capture
