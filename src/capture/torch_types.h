/// \file The Python types of torch that capture treats specially, found once.
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>

namespace assay::capture {

PyTypeObject* size_type();       ///< torch.Size
PyTypeObject* tensor_type();     ///< torch.Tensor
PyTypeObject* parameter_type();  ///< torch.nn.Parameter
PyTypeObject* buffer_type();     ///< torch.nn.Buffer
PyTypeObject* module_type();     ///< torch.nn.Module

/// A tensor of any type. (THPVariable_Check can throw at the recursion limit.)
bool is_tensor(PyObject* object);
/// A tensor without behaviour of its own: torch.Tensor, Parameter or Buffer.
bool is_plain_tensor(PyObject* object);
const at::Tensor& tensor_of(PyObject* object);
/// The Python object of a tensor; the one it has already, if it has one. A new reference.
PyObject* wrap_tensor(const at::Tensor& tensor);
/// torch.dtype, torch.layout, torch.memory_format: singletons.
bool is_torch_enum(PyObject* object);
bool is_device(PyObject* object);

}  // namespace assay::capture
