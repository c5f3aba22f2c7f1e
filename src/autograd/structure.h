/// \file The structure of a program's results: which tensor stands where in nested lists, tuples
/// and dicts, and what else is in them. Compiled programs know flat lists of tensors only.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "aten/value.h"

namespace assay::autograd {

class Structure {
 public:
  Structure() = default;
  /// Takes `value` apart; its tensors are appended to `tensors` in order. Numbers, strings and None
  /// stay in the structure.
  Structure(const aten::Value& value, std::vector<at::Tensor>& tensors);

  /// The value again, with other tensors.
  aten::Value fill(const std::vector<at::Tensor>& tensors) const;

 private:
  aten::Value shape_;  // tensors replaced by None
  bool is_one_tensor_ = false;
};

}  // namespace assay::autograd
