#include "aten/functions/tensor_attributes.h"

#include <array>
#include <functional>

#include "assay/error.h"
#include "aten/functions/operand.h"

namespace assay::aten {

namespace {

struct TensorAttribute {
  std::string_view name;
  Value (*read)(const at::Tensor& self);
};

template <auto predicate>
Value read_flag(const at::Tensor& self) {
  return c10::IValue(std::invoke(predicate, self));
}

constexpr std::array kTensorAttributes = std::to_array<TensorAttribute>({
    {"shape", [](const at::Tensor& self) { return size_tuple(self.sizes()); }},
    {"dtype", [](const at::Tensor& self) { return Operand(self.scalar_type()).value; }},
    {"device", [](const at::Tensor& self) { return Operand(self.device()).value; }},
    {"layout",
     [](const at::Tensor& self) {
       return Value(Value::Kind::layout, static_cast<std::int64_t>(self.layout()));
     }},
    {"ndim", [](const at::Tensor& self) { return Operand(self.dim()).value; }},
    {"T", [](const at::Tensor& self) { return run("aten::numpy_T", {self}); }},
    {"mT", [](const at::Tensor& self) { return run("aten::mT", {self}); }},
    {"H", [](const at::Tensor& self) { return run("aten::matrix_H", {self}); }},
    {"mH", [](const at::Tensor& self) { return run("aten::mH", {self}); }},
    {"real", [](const at::Tensor& self) { return run("aten::real", {self}); }},
    {"imag", [](const at::Tensor& self) { return run("aten::imag", {self}); }},
    {"data", [](const at::Tensor& self) { return Operand(self.variable_data()).value; }},
    {"grad",
     [](const at::Tensor& self) {
       const at::Tensor& grad = self.grad();
       return grad.defined() ? Operand(grad).value : Value();
     }},
    {"requires_grad", read_flag<&at::TensorBase::requires_grad>},
    {"is_leaf", read_flag<&at::TensorBase::is_leaf>},
    {"is_cpu", read_flag<&at::TensorBase::is_cpu>},
    {"is_cuda", read_flag<&at::TensorBase::is_cuda>},
    {"is_meta", read_flag<&at::TensorBase::is_meta>},
    {"is_mps", read_flag<&at::TensorBase::is_mps>},
    {"is_xpu", read_flag<&at::TensorBase::is_xpu>},
    {"is_mkldnn", read_flag<&at::TensorBase::is_mkldnn>},
    {"is_nested", [](const at::Tensor& self) { return Operand(self.is_nested()).value; }},
    {"is_quantized", read_flag<&at::TensorBase::is_quantized>},
    {"is_sparse", read_flag<&at::TensorBase::is_sparse>},
    {"is_sparse_csr", read_flag<&at::TensorBase::is_sparse_csr>},
    {"itemsize",
     [](const at::Tensor& self) {
       return Operand(static_cast<std::int64_t>(self.itemsize())).value;
     }},
    {"nbytes",
     [](const at::Tensor& self) {
       return Operand(static_cast<std::int64_t>(self.nbytes())).value;
     }},
    {"_version", [](const at::Tensor& self) { return Operand(self._version()).value; }},
});

Value dtype_attribute(at::ScalarType dtype, std::string_view name) {
  if (name == "itemsize") return Operand(static_cast<std::int64_t>(c10::elementSize(dtype))).value;
  if (name == "is_floating_point") return Operand(c10::isFloatingType(dtype)).value;
  if (name == "is_complex") return Operand(c10::isComplexType(dtype)).value;
  throw UserError("'torch.dtype' object has no attribute '" + std::string(name) + "' here");
}

Value device_attribute(c10::Device device, std::string_view name) {
  if (name == "type") return Operand(c10::DeviceTypeName(device.type(), true).c_str()).value;
  if (name == "index") {
    return device.has_index() ? Operand(std::int64_t{device.index()}).value : Value();
  }
  throw UserError("'torch.device' object has no attribute '" + std::string(name) + "' here");
}

}  // namespace

Value get_attribute(const Value& object, std::string_view name) {
  if (object.is_tensor()) {
    for (const TensorAttribute& attribute : kTensorAttributes) {
      if (attribute.name == name) return attribute.read(object.leaf.toTensor());
    }
    throw NeedsPythonError("the attribute '" + std::string(name) +
                           "' of a Tensor needs a Python process");
  }
  if (object.kind == Value::Kind::dtype) return dtype_attribute(dtype_of(object), name);
  if (object.is_leaf() && object.leaf.isDevice()) {
    return device_attribute(object.leaf.toDevice(), name);
  }
  throw UserError("'" + type_name(object) + "' object has no attribute '" + std::string(name) +
                  "' here");
}

}  // namespace assay::aten
