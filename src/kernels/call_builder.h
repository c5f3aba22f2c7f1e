/// \file New calls in the place of another, with the layouts of their results: for passes that
/// prepare a graph before it is lowered.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/ir.h"

namespace assay::kernels {

/// The layout of a node's value, in no buffer yet; nothing if it is not a tensor on the CPU, has
/// symbols, or does not start its storage.
std::optional<TensorRef> layout_ref(const graph::Node* node);

TensorRef row_major(c10::ScalarType dtype, Sizes sizes);
bool is_row_major(const TensorRef& ref);
TensorRef permuted(const TensorRef& ref, std::initializer_list<std::size_t> order);

graph::Argument list_of(const Sizes& numbers);

/// Makes calls before a node, in its name: they have its stack and provenance.
class CallBuilder {
 public:
  CallBuilder(graph::Graph& graph, graph::Node& node) : graph_(graph), node_(node) {}

  /// `op` as in `mm` or `add.Tensor`.
  graph::Node& call(const std::string& op, std::vector<graph::Argument> args,
                    const TensorRef& layout, std::vector<graph::NamedArgument> kwargs = {});

 private:
  graph::Graph& graph_;
  graph::Node& node_;
};

}  // namespace assay::kernels
