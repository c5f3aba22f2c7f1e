/// \file What must be the same of a call's inputs for a compiled graph to be used again: the
/// properties of tensors, the values of everything else, and which tensors share memory. Used by
/// the C++ front end and by capture; checked in the calling convention (assay/compiler.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aten/value.h"
#include "guards/global_state.h"

namespace assay::guards {

struct GuardedTensor;

/// The properties of one tensor that a compiled graph depends on.
class TensorGuard {
 public:
  explicit TensorGuard(const at::Tensor& tensor);

  bool holds(const at::Tensor& tensor) const;
  /// Whether its sizes, and perhaps the strides that follow from them, are all that differs.
  bool has_other_sizes(const at::Tensor& tensor) const;
  /// From now on these dimensions (one bit each) may have any size, and the strides may be any.
  void open(std::uint64_t dimensions) { open_ |= dimensions; }
  /// The size of one dimension is guarded again. With the last one, the strides are, too.
  void fix(std::size_t dimension) { open_ &= ~(std::uint64_t{1} << dimension); }
  void close() { open_ = 0; }
  bool is_open() const { return open_ != 0; }
  /// The dimensions whose size is another one, whether guarded or not; one bit each.
  std::uint64_t other_dimensions(const at::Tensor& tensor) const;
  /// One sentence about what differs in `tensor`, which is called `name`.
  std::string failure(const at::Tensor& tensor, const std::string& name) const;

 private:
  /// Everything but sizes and strides.
  inline bool same_kind(const at::Tensor& tensor) const;
  /// Whether it is a leaf and requires grad as before.
  inline bool same_history(const at::Tensor& tensor) const;
  inline bool holds_here(const at::Tensor& tensor) const;
  friend bool all_hold(std::span<const GuardedTensor> tensors);
  bool same_guarded_sizes(const at::Tensor& tensor) const;

  c10::DispatchKeySet keys_;  // tells sparse, quantized, subclasses, lazy negatives apart
  c10::ScalarType dtype_;
  c10::Device device_;
  bool requires_grad_;
  bool is_leaf_;
  bool is_nested_;  // never part of a graph; guarded by its keys alone
  bool has_strides_;
  std::uint64_t open_ = 0;  // dimensions that may have any size
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
};

/// A tensor and what must hold of it.
struct GuardedTensor {
  const at::Tensor* tensor;
  const TensorGuard* guard;
};
/// Whether all hold, in one call.
bool all_hold(std::span<const GuardedTensor> tensors);

/// What must be the same of one input.
class InputGuard {
 public:
  explicit InputGuard(const c10::IValue& input);
  bool holds(const c10::IValue& input) const;
  bool is_tensor() const { return tensor_.has_value(); }
  const std::optional<TensorGuard>& tensor() const { return tensor_; }
  const aten::Value& constant() const { return constant_; }

 private:
  std::optional<TensorGuard> tensor_;
  aten::Value constant_;  // anything else: baked into the graph
};

/// Guards for one call's inputs. Checking allocates nothing.
class Guards {
 public:
  explicit Guards(std::span<const c10::IValue> inputs);

  bool hold(std::span<const c10::IValue> inputs, const GlobalState& state) const {
    return state == state_ && same_properties(inputs) && same_sharing(inputs);
  }
  /// Whether the inputs' own properties are the same, however they share memory.
  bool same_properties(std::span<const c10::IValue> inputs) const;
  /// Whether they share memory as before. To be asked if their properties are the same.
  bool same_sharing(std::span<const c10::IValue> inputs) const;
  /// Whether all that differs is the sizes of tensors, and integers, which then may be sizes.
  bool meet_other_sizes(std::span<const c10::IValue> inputs, const GlobalState& state) const;
  /// One sentence about the first guard that fails, for the `recompiles` log; empty if all hold.
  std::string failure(std::span<const c10::IValue> inputs, const GlobalState& state) const;

 private:
  /// The first input with storage that one shares memory with (itself if it shares with none), and
  /// how it lies to that.
  struct Sharing {
    std::size_t first;
    bool is_same_tensor;
    std::int64_t distance;  // between their beginnings, in elements
    bool operator==(const Sharing&) const = default;
  };
  static Sharing sharing_of(std::span<const c10::IValue> inputs, std::size_t index,
                            std::size_t first);

  GlobalState state_;
  std::vector<InputGuard> inputs_;
  std::vector<std::size_t> with_storage_;  // the inputs that can share memory
  std::vector<Sharing> sharing_;           // of each of these
};

}  // namespace assay::guards
