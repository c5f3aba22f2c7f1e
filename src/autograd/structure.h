/// \file The structure of one result of a program, as a trace found it: which tensor stands where
/// in nested lists, tuples and dicts, and the constants among them. Compiled halves know flat lists
/// of tensors only.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "aten/value.h"

namespace assay::autograd {

class Structure {
 public:
  Structure() = default;
  /// Takes `value` apart; its tensors are appended to `tensors` in order. Numbers, strings and None
  /// stay in the structure.
  Structure(const aten::Value& value, std::vector<at::Tensor>& tensors);

  /// The value again, with other tensors, which are moved from.
  aten::Value fill(std::span<c10::IValue> tensors) const;

  /// It is a tensor, and nothing else.
  bool is_one_tensor() const { return is_one_tensor_; }
  std::size_t tensor_count() const { return tensor_count_; }

 private:
  aten::Value shape_;  // tensors replaced by a mark of their place
  bool is_one_tensor_ = false;
  std::size_t tensor_count_ = 0;
};

}  // namespace assay::autograd
