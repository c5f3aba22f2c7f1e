/// \file NumPy's arrays and scalars, which a graph holds as tensors on the same memory. Used by the
/// recorder, by calls of Python in a graph and by recipes.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "capture/ref.h"

namespace assay::capture {

/// What a graph's tensor is to the program.
enum class TensorForm : std::uint8_t {
  tensor,
  array,   ///< A numpy.ndarray on its memory.
  scalar,  ///< A numpy.generic of its value.
};

/// A numpy.ndarray, but not of a subclass.
bool is_array(PyObject* object);
/// numpy.float32(1) and its like.
bool is_array_scalar(PyObject* object);
TensorForm form_of(PyObject* object);
/// numpy.dtype and its like: objects that describe arrays, and do not change.
bool describes_arrays(PyObject* object);

/// A tensor on the memory of an array, or of a scalar's value. Null with an exception set if torch
/// has no such tensor: of strings, with negative strides, or read-only.
Ref tensor_of_array(PyObject* array);
/// The array or scalar again. Null with an exception set.
Ref array_of_tensor(PyObject* tensor, TensorForm form);

/// The tensors, arrays and scalars in what a call returned, which may be in tuples and lists.
/// False: there are other objects than these and None.
bool arrays_of_result(PyObject* result, std::vector<PyObject*>& found, int depth = 0);

}  // namespace assay::capture
