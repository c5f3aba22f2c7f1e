/// \file The recorder below autograd: while it is active on a thread, every operator that thread
/// runs is also written into a graph.
///
/// It runs on real tensors, so every node's dtype, sizes and strides are what the kernels gave. It
/// sits on a dispatch key below autograd and functionalization (aten/trace_keys.h), so it sees
/// plain tensors and operators that change nothing. autograd/trace.h is its user.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "aten/overlapping_writes.h"
#include "graph/graph.h"

namespace assay::aten {

/// A tensor the program used without having been given it: a parameter held by a module, say.
struct CapturedTensor {
  at::Tensor tensor;
  graph::Node* placeholder = nullptr;
  /// The program changed it in place; `Recorder::node_of` is its value at the end.
  bool is_changed = false;
};

class Recorder {
 public:
  using Stack = std::vector<c10::IValue>;
  /// May make a call in another way (calling other operators, which are then recorded) and leave
  /// the results on the stack; false to record the call itself.
  using Replacement = std::function<bool(const c10::OperatorHandle&, Stack&)>;

  explicit Recorder(graph::Graph& graph) : graph_(graph) {}

  /// A placeholder for which `tensor` stands while recording.
  graph::Node& add_input(std::string_view name, const at::Tensor& tensor);
  /// The node whose value `tensor` is now. A tensor not seen before becomes a capture.
  graph::Node& node_of(const at::Tensor& tensor);
  bool knows(const at::Tensor& tensor) const { return entries_.contains(impl(tensor)); }
  const std::vector<CapturedTensor>& captures() const { return captures_; }
  /// True if the value of this input or captured tensor was replaced while recording.
  bool is_changed(const at::Tensor& tensor) const;

  void set_replacement(Replacement replacement) { replacement_ = std::move(replacement); }
  /// Called for every node as it is made.
  void set_listener(std::function<void(graph::Node&)> listener) { listener_ = std::move(listener); }
  /// Called to describe where in the user's program a call stands; for messages.
  void set_where(std::function<std::string()> where) { where_ = std::move(where); }

  /// Asked about every call of the program, before autograd sees it.
  OverlappingWrites& overlapping_writes() { return overlapping_writes_; }

  /// Runs one operator call whose arguments are on `stack` and records it; used by the dispatch
  /// key.
  void record(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack);

  /// Makes a recorder the active one of this thread.
  class ActiveScope {
   public:
    explicit ActiveScope(Recorder& recorder);
    ~ActiveScope();
    ActiveScope(const ActiveScope&) = delete;
    ActiveScope& operator=(const ActiveScope&) = delete;

   private:
    Recorder* saved_;
  };
  static Recorder* active();

 private:
  struct Entry {
    at::Tensor tensor;   // kept alive: addresses are reused
    at::Tensor current;  // what it would hold had it really been changed in place
    graph::Node* node = nullptr;
  };

  static const c10::TensorImpl* impl(const at::Tensor& tensor) {
    return tensor.unsafeGetTensorImpl();
  }
  graph::Node& add_call(const c10::OperatorHandle& op, const Stack& arguments);
  void add_results(graph::Node& call, const Stack& results);
  void bind(const at::Tensor& tensor, graph::Node& node);
  void replace_value(const at::Tensor& tensor, const at::Tensor& value, graph::Node& node);
  void use_current_values(Stack& stack) const;
  void record_in_place(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack);
  void record_statistics(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack);
  bool replace_batch_norm(Stack& stack, bool has_statistics);
  void record_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack);

  graph::Graph& graph_;
  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
  std::vector<CapturedTensor> captures_;
  Replacement replacement_;
  OverlappingWrites overlapping_writes_;
  std::function<void(graph::Node&)> listener_;
  std::function<std::string()> where_;
};

}  // namespace assay::aten
