/// \file Refuses in-place writes that a functional graph would get wrong. Called for each operator
/// of a program that is traced with functionalization (aten/trace_keys.cpp).
///
/// Functionalization replaces a write by a new value of the whole tensor: each element is computed
/// once, from what the arguments held before the call. In eager mode memory that several elements
/// share is updated several times, and an argument that overlaps the written memory may be read
/// after it has changed.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <unordered_set>
#include <vector>

namespace assay::aten {

class OverlappingWrites {
 public:
  /// A functional tensor that stands for an input of the program. `is_copied`: the trace begins
  /// with a copy of its memory, in which it is at another place.
  void add_input(const at::Tensor& tensor, bool is_copied);

  /// Throws `TraceError` if `op`
  /// - writes through a tensor, or through a view of one, whose elements share memory;
  /// - writes to memory that another of its arguments overlaps;
  /// - reads or writes an input by an offset in its storage: a value that has been written to is in
  ///   a storage of its own.
  /// `stack` ends with the call's arguments.
  void refuse(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack);

 private:
  void refuse_offset(const c10::OperatorHandle& op, const c10::IValue* arguments);
  void add_write(const c10::OperatorHandle& op, const at::Tensor& tensor);

  std::unordered_set<const c10::StorageImpl*> inputs_;
  std::unordered_set<const c10::StorageImpl*> viewed_by_offset_;
  std::unordered_set<const c10::StorageImpl*> written_;
};

}  // namespace assay::aten
