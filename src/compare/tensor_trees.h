/// \file Visits and replaces the tensors inside lists, tuples and dicts; internal to compare.
#pragma once

#include <ATen/core/Tensor.h>

#include "aten/value.h"

namespace assay::compare {

/// Calls `visit` for every defined tensor of the value, in order.
template <typename Visitor>
void for_each_tensor(const aten::Value& value, Visitor&& visit) {
  if (value.is_tensor()) {
    if (value.leaf.toTensor().defined()) visit(value.leaf.toTensor());
    return;
  }
  if (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple())) {
    for (const aten::Value& item : aten::unpack(value)) for_each_tensor(item, visit);
  }
  for (const aten::Value& item : value.items) for_each_tensor(item, visit);
}

/// The value with every defined tensor replaced by what `replace` gives for it, in order.
template <typename Replacement>
aten::Value map_tensors(const aten::Value& value, Replacement&& replace) {
  if (value.is_tensor()) {
    if (!value.leaf.toTensor().defined()) return value;
    return c10::IValue(replace(value.leaf.toTensor()));
  }
  aten::Value made = value;
  if (value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple())) {
    const auto kind = value.leaf.isTuple() ? aten::Value::Kind::tuple : aten::Value::Kind::list;
    made = aten::Value::sequence(kind, aten::unpack(value));
  }
  for (aten::Value& item : made.items) item = map_tensors(item, replace);
  return made;
}

}  // namespace assay::compare
