// Methods of tensors that are bound by hand in PyTorch, so that no operator has their form.
#include <array>
#include <cmath>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

Value size(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  if (arguments["dim"].is_none()) return size_tuple(self.sizes());
  return c10::IValue(self.size(arguments.integer("dim")));
}

Value stride(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  if (arguments["dim"].is_none()) return size_tuple(self.strides());
  return c10::IValue(self.stride(arguments.integer("dim")));
}

Value dimensions(const BoundArguments& arguments) {
  return c10::IValue(arguments.tensor("self").dim());
}

Value element_count(const BoundArguments& arguments) {
  return c10::IValue(arguments.tensor("self").numel());
}

Value is_contiguous(const BoundArguments& arguments) {
  const Value& format = arguments["memory_format"];
  if (format.is_none()) return c10::IValue(arguments.tensor("self").is_contiguous());
  if (format.kind != Value::Kind::memory_format) throw UserError("expected a memory format");
  return c10::IValue(
      arguments.tensor("self").is_contiguous(static_cast<at::MemoryFormat>(format.leaf.toInt())));
}

Value item(const BoundArguments& arguments) { return c10::IValue(arguments.tensor("self").item()); }

Value nested_list(const at::Tensor& tensor) {
  if (tensor.dim() == 0) return c10::IValue(tensor.item());
  std::vector<Value> items;
  for (std::int64_t i = 0; i < tensor.size(0); ++i)
    items.push_back(nested_list(tensor.select(0, i)));
  return list_of(std::move(items));
}

// `x.where(condition, other)`: the operator's condition comes first.
Value where(const BoundArguments& arguments) {
  return run("aten::where", {arguments["condition"], arguments["self"], arguments["other"]});
}

Value nonzero_method(const BoundArguments& arguments) {
  const char* op = arguments.truth("as_tuple") ? "aten::nonzero_numpy" : "aten::nonzero";
  return run(op, {arguments["self"]});
}

// `x.hsplit(2)` makes 2 parts, `x.hsplit(2, 4)` cuts at 2 and 4.
Value split_at(const BoundArguments& arguments) {
  const std::string op = "aten::" + std::string(arguments.function());
  const std::vector<Value> given = unpack(arguments["where"]);
  return run(op, {arguments["self"], given.size() == 1 ? given.front() : arguments["where"]});
}

Value requires_grad_(const BoundArguments& arguments) {
  const at::Tensor self = arguments.tensor("self");
  self.requires_grad_(arguments.truth("requires_grad"));
  return arguments["self"];
}

// Python checks for named dimensions, then calls the operator.
Value unflatten(const BoundArguments& arguments) {
  return run("aten::unflatten", {arguments["self"], arguments["dim"], arguments["sizes"]});
}

Value is_integer(const BoundArguments& arguments) {
  const Value& self = arguments["self"];
  if (self.is_int() || self.is_bool()) return Operand(true).value;
  const double number = arguments.number("self");
  return Operand(std::isfinite(number) && number == std::floor(number)).value;
}

constexpr std::array kTensorMethods = std::to_array<TorchFunction>({
    {"size", "self, dim=None", size},
    {"stride", "self, dim=None", stride},
    {"dim", "self", dimensions},
    {"ndimension", "self", dimensions},
    {"numel", "self", element_count},
    {"nelement", "self", element_count},
    {"element_size", "self",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(arguments.tensor("self").element_size());
     }},
    {"storage_offset", "self",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(arguments.tensor("self").storage_offset());
     }},
    {"get_device", "self",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(std::int64_t{arguments.tensor("self").get_device()});
     }},
    {"is_contiguous", "self, memory_format=None", is_contiguous},
    {"item", "self", item},
    {"tolist", "self",
     [](const BoundArguments& arguments) { return nested_list(arguments.tensor("self")); }},
    {"where", "self, condition, other", where},
    {"nonzero", "self, *, as_tuple=False", nonzero_method},
    {"polygamma", "self, n",
     [](const BoundArguments& arguments) {
       return run("aten::polygamma", {arguments["n"], arguments["self"]});
     }},
    {"hsplit", "self, *where", split_at},
    {"vsplit", "self, *where", split_at},
    {"dsplit", "self, *where", split_at},
    {"requires_grad_", "self, requires_grad=True", requires_grad_},
    {"unflatten", "self, dim, sizes", unflatten},
    {"is_integer", "self", is_integer},
});

}  // namespace

FunctionTable tensor_methods() { return kTensorMethods; }

}  // namespace assay::aten
