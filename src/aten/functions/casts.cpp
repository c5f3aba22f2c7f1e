// `x.to(...)` in all its forms, and the methods named after a dtype or a device.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// What `to` was asked for; what is absent stays as it is.
struct Conversion {
  std::optional<at::ScalarType> dtype;
  std::optional<c10::Device> device;
  bool non_blocking = false;
  bool copy = false;
  Value memory_format;
};

Value convert_tensor(const at::Tensor& self, const Conversion& conversion) {
  const Operand dtype = conversion.dtype ? Operand(*conversion.dtype) : Operand(std::nullopt);
  const Operand device = conversion.device ? Operand(*conversion.device) : Operand(std::nullopt);
  return run("aten::to", {self},
             {{"dtype", dtype},
              {"device", device},
              {"non_blocking", conversion.non_blocking},
              {"copy", conversion.copy},
              {"memory_format", conversion.memory_format}});
}

Value to_dtype(const BoundArguments& arguments, at::ScalarType dtype) {
  Conversion conversion;
  conversion.dtype = dtype;
  conversion.memory_format = arguments["memory_format"];
  return convert_tensor(arguments.tensor("self"), conversion);
}

template <at::ScalarType dtype>
Value cast(const BoundArguments& arguments) {
  return to_dtype(arguments, dtype);
}

Value cpu(const BoundArguments& arguments) {
  Conversion conversion;
  conversion.device = c10::Device(at::kCPU);
  conversion.memory_format = arguments["memory_format"];
  return convert_tensor(arguments.tensor("self"), conversion);
}

bool is_device(const Value& value) {
  return value.is_string() || (value.is_leaf() && value.leaf.isDevice());
}

// to(dtype, ...), to(device, dtype=None, ...), to(other, ...): the first argument tells them apart.
Value to(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  std::vector<Value> given = unpack(arguments["args"]);
  Conversion conversion;
  conversion.memory_format = arguments["memory_format"];
  conversion.non_blocking = arguments.truth("non_blocking");
  conversion.copy = arguments.truth("copy");

  Value dtype = arguments["dtype"];
  Value device = arguments["device"];
  Value other = arguments["tensor"];
  std::size_t next = 0;
  if (!given.empty()) {
    if (given[0].kind == Value::Kind::dtype) {
      dtype = given[0];
      next = 1;
    } else if (given[0].is_tensor()) {
      other = given[0];
      next = 1;
    } else if (is_device(given[0]) || given[0].is_none()) {
      device = given[0];
      next = 1;
      if (given.size() > 1 && (given[1].kind == Value::Kind::dtype || given[1].is_none())) {
        dtype = given[1];
        next = 2;
      }
    } else {
      throw UserError("to() received an invalid argument of type " + type_name(given[0]));
    }
  }
  const auto take_flag = [&](bool& flag) {
    if (next == given.size()) return;
    if (!given[next].is_bool()) {
      throw UserError("to() expected a bool, not " + type_name(given[next]));
    }
    flag = given[next++].leaf.toBool();
  };
  take_flag(conversion.non_blocking);
  take_flag(conversion.copy);
  if (next != given.size()) throw UserError("to() received too many arguments");

  if (!other.is_none()) {
    conversion.dtype = tensor_of(other).scalar_type();
    conversion.device = tensor_of(other).device();
  }
  if (!dtype.is_none()) conversion.dtype = dtype_of(dtype);
  if (!device.is_none()) conversion.device = device_of(device);
  return convert_tensor(self, conversion);
}

struct TypeName {
  std::string_view name;
  at::ScalarType dtype;
};

// The names of the old tensor types, without their modules.
constexpr std::array kTypeNames = {
    TypeName{"FloatTensor", at::kFloat},
    TypeName{"DoubleTensor", at::kDouble},
    TypeName{"HalfTensor", at::kHalf},
    TypeName{"BFloat16Tensor", at::kBFloat16},
    TypeName{"ByteTensor", at::kByte},
    TypeName{"CharTensor", at::kChar},
    TypeName{"ShortTensor", at::kShort},
    TypeName{"IntTensor", at::kInt},
    TypeName{"LongTensor", at::kLong},
    TypeName{"BoolTensor", at::kBool},
    TypeName{"ComplexFloatTensor", at::kComplexFloat},
    TypeName{"ComplexDoubleTensor", at::kComplexDouble},
};

// `x.type()` names the type, `x.type(dtype)` converts; a dtype may be written `torch.FloatTensor`.
Value type(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  const Value& wanted = arguments["dtype"];
  if (wanted.is_none()) {
    for (const TypeName& known : kTypeNames) {
      if (known.dtype == self.scalar_type() && self.is_cpu() && self.layout() == at::kStrided) {
        return Operand(("torch." + std::string(known.name)).c_str()).value;
      }
    }
    throw NeedsPythonError("the type name of this tensor needs a Python process");
  }
  Conversion conversion;
  conversion.non_blocking = arguments.truth("non_blocking");
  if (wanted.kind == Value::Kind::dtype) {
    conversion.dtype = dtype_of(wanted);
    return convert_tensor(self, conversion);
  }
  if (wanted.is_string() || wanted.kind == Value::Kind::name) {
    constexpr std::string_view kPrefix = "torch.";
    const std::string text = wanted.leaf.toStringRef();
    for (const TypeName& known : kTypeNames) {
      if (text.starts_with(kPrefix) && text.substr(kPrefix.size()) == known.name) {
        conversion.dtype = known.dtype;
        conversion.device = c10::Device(at::kCPU);
        return convert_tensor(self, conversion);
      }
    }
  }
  throw UserError("invalid type: " + type_name(wanted));
}

constexpr std::string_view kCastParameters = "self, memory_format=None";

constexpr std::array kCastMethods = std::to_array<TorchFunction>({
    {"to",
     "self, *args, dtype=None, device=None, tensor=None, non_blocking=False, copy=False, "
     "memory_format=None",
     to},
    {"type", "self, dtype=None, non_blocking=False", type},
    {"cpu", kCastParameters, cpu},
    {"float", kCastParameters, cast<at::kFloat>},
    {"double", kCastParameters, cast<at::kDouble>},
    {"half", kCastParameters, cast<at::kHalf>},
    {"bfloat16", kCastParameters, cast<at::kBFloat16>},
    {"int", kCastParameters, cast<at::kInt>},
    {"long", kCastParameters, cast<at::kLong>},
    {"short", kCastParameters, cast<at::kShort>},
    {"char", kCastParameters, cast<at::kChar>},
    {"byte", kCastParameters, cast<at::kByte>},
    {"bool", kCastParameters, cast<at::kBool>},
    {"cfloat", kCastParameters, cast<at::kComplexFloat>},
    {"cdouble", kCastParameters, cast<at::kComplexDouble>},
});

}  // namespace

FunctionTable cast_methods() { return kCastMethods; }

}  // namespace assay::aten
