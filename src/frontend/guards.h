/// \file What must be the same for a compiled function to be used again: the properties of its
/// inputs, and the settings of the process that change what operators do.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "aten/value.h"

namespace assay::frontend {

/// Settings that change what a program computes.
struct GlobalState {
  bool grad_mode = true;
  bool inference_mode = false;
  bool deterministic = false;
  bool autocast = false;
  c10::ScalarType autocast_dtype = c10::ScalarType::BFloat16;
  c10::ScalarType default_dtype = c10::ScalarType::Float;

  static GlobalState current();
  bool operator==(const GlobalState&) const = default;
};

/// Guards for one call's inputs. Checking allocates nothing for tensors of few dimensions.
class Guards {
 public:
  explicit Guards(const std::vector<aten::Value>& inputs);

  bool hold(const std::vector<aten::Value>& inputs, const GlobalState& state) const {
    return state == state_ && failed_input(inputs) == nullptr && same_sharing(inputs);
  }
  /// Whether the inputs' own properties are the same, however they share memory.
  bool same_properties(const std::vector<aten::Value>& inputs) const {
    return failed_input(inputs) == nullptr;
  }
  /// One sentence about the first guard that fails, for the `recompiles` log; empty if all hold.
  std::string failure(const std::vector<aten::Value>& inputs, const GlobalState& state) const;

 private:
  struct Input {
    bool is_tensor = false;
    // a tensor
    c10::ScalarType dtype = c10::ScalarType::Float;
    c10::Device device = c10::Device(c10::DeviceType::CPU);
    c10::DispatchKeySet keys;  // tells sparse, quantized, subclasses, lazy negatives apart
    bool requires_grad = false;
    bool is_leaf = true;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    // a number, string or anything else: baked into the graph
    aten::Value constant;
  };

  static bool holds(const Input& expected, const aten::Value& value);
  const Input* failed_input(const std::vector<aten::Value>& inputs) const;
  bool same_sharing(const std::vector<aten::Value>& inputs) const;

  GlobalState state_;
  std::vector<Input> inputs_;
  /// For each input that shares memory with an earlier one: the first such input, and how it lies
  /// to it. Empty if all are separate.
  struct Sharing {
    std::size_t input;
    std::size_t first;
    bool is_same;
    std::int64_t distance;  // between their beginnings, in elements
    bool operator==(const Sharing&) const = default;
  };
  static std::vector<Sharing> find_sharing(const std::vector<aten::Value>& inputs);
  std::vector<Sharing> sharing_;
};

}  // namespace assay::frontend
