// The values of a graph's tensor attributes.
#include <ATen/core/Tensor.h>

#include "assay/error.h"
#include "aten/call.h"
#include "aten/plan.h"

namespace assay::aten {

namespace {

void flatten_numbers(const graph::Argument& values, std::vector<graph::Argument>& into) {
  if (values.get_if<graph::List>() == nullptr && values.get_if<graph::Tuple>() == nullptr) {
    into.push_back(values);
    return;
  }
  for (const graph::Argument& item : values.items()) flatten_numbers(item, into);
}

Value size_list(const std::vector<graph::SizeExpr>& sizes) {
  std::vector<Value> items;
  items.reserve(sizes.size());
  for (const graph::SizeExpr& size : sizes) items.emplace_back(c10::IValue(size.evaluate({})));
  return Value::sequence(Value::Kind::list, std::move(items));
}

Value dtype_value(c10::ScalarType dtype) {
  return Value(Value::Kind::dtype, static_cast<std::int64_t>(dtype));
}

// Elements one by one: only small constants are written out in a file.
at::Tensor from_values(const graph::TensorAttribute& attribute) {
  std::vector<graph::Argument> numbers;
  flatten_numbers(attribute.values, numbers);
  const Value dtype = dtype_value(attribute.meta.dtype);
  at::Tensor flat =
      call("aten::zeros",
           {{Value::sequence(Value::Kind::list,
                             {c10::IValue(static_cast<std::int64_t>(numbers.size()))})},
            {{"dtype", dtype}}})
          .leaf.toTensor();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Value number = constant_value(numbers[i]);
    if (!number.is_number())
      throw UserError("a tensor constant contains something other than numbers");
    const at::Tensor element =
        call("aten::select",
             {{c10::IValue(flat), c10::IValue(0), c10::IValue(static_cast<std::int64_t>(i))}, {}})
            .leaf.toTensor();
    call("aten::fill_", {{c10::IValue(element), number}, {}});
  }
  return call("aten::reshape", {{c10::IValue(flat), size_list(attribute.meta.sizes)}, {}})
      .leaf.toTensor();
}

at::Tensor sized(const char* op, const graph::TensorAttribute& attribute) {
  return call(op,
              {{size_list(attribute.meta.sizes)}, {{"dtype", dtype_value(attribute.meta.dtype)}}})
      .leaf.toTensor();
}

at::Tensor uniform(const graph::TensorAttribute& attribute) {
  if (!c10::isFloatingType(attribute.meta.dtype)) {
    return call("aten::randint", {{c10::IValue(static_cast<std::int64_t>(attribute.low)),
                                   c10::IValue(static_cast<std::int64_t>(attribute.high)),
                                   size_list(attribute.meta.sizes)},
                                  {{"dtype", dtype_value(attribute.meta.dtype)}}})
        .leaf.toTensor();
  }
  at::Tensor made = sized("aten::empty", attribute);
  call("aten::uniform_",
       {{c10::IValue(made), c10::IValue(attribute.low), c10::IValue(attribute.high)}, {}});
  return made;
}

at::Tensor constant(const graph::TensorAttribute& attribute) {
  at::Tensor made = sized("aten::zeros", attribute);
  call("aten::fill_", {{c10::IValue(made), c10::IValue(attribute.low)}, {}});
  return made;
}

at::Tensor filled(const graph::TensorAttribute& attribute) {
  using Fill = graph::TensorAttribute::Fill;
  switch (attribute.fill) {
    case Fill::values:
      return from_values(attribute);
    case Fill::randn:
      return sized("aten::randn", attribute);
    case Fill::zeros:
      return sized("aten::zeros", attribute);
    case Fill::constant:
      return constant(attribute);
    case Fill::uniform:
      return uniform(attribute);
  }
  throw InternalError("unknown fill of a tensor attribute");
}

}  // namespace

UserError unusable_attribute(const graph::Attribute& attribute) {
  if (const auto* missing = std::get_if<graph::MissingSubgraph>(&attribute.value)) {
    if (missing->text == graph::kMissingAttribute) {
      return UserError("the file does not say what the attribute '" + attribute.name + "' is",
                       "this is stock PyTorch's readable form, which leaves modules and "
                       "parameters out; use the repro.py or fx_graph_runnable.py next to it");
    }
    return UserError("the body of the subgraph '" + attribute.name +
                         "' is not in the file: stock PyTorch wrote '" + missing->text + "'",
                     "reproduce the branch on its own, or capture the program with Assay, whose "
                     "files contain subgraphs");
  }
  const auto* module = std::get_if<graph::ModuleAttribute>(&attribute.value);
  const std::string what = module == nullptr ? "" : ", a " + module->constructor + ",";
  return UserError("the module '" + attribute.name + "'" + what + " needs a Python process",
                   "its code is not in the file, and it is not one of torch.nn's modules that "
                   "Assay knows; --stack torch runs the file if that Python can import it");
}

Value attribute_value(const graph::TensorAttribute& attribute) {
  if (!attribute.meta.device.is_cpu()) {
    throw UserError("this graph has a tensor on '" + attribute.meta.device.str() +
                    "'; Assay runs on the CPU");
  }
  at::Tensor tensor = filled(attribute);
  if (attribute.meta.requires_grad) tensor.set_requires_grad(true);
  return c10::IValue(tensor);
}

}  // namespace assay::aten
