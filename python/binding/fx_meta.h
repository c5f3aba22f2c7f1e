/// \file What FX nodes know about their values and their places in the user's program <->
/// graph::NodeMeta. For fx_graph.cpp.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <string>
#include <unordered_map>

#include "graph/graph.h"

namespace assay::binding {

/// Reads the metadata of one graph's nodes, and of its subgraphs'.
class MetaReader {
 public:
  /// Of the node whose `meta` this is.
  void read(pybind11::handle meta, graph::NodeMeta& into);
  /// Of an example: a tensor, a number, a list or tuple of them. Unknown for anything else.
  graph::ValueMeta value_of(pybind11::handle example);
  /// What the sizes that were read so far, and the `meta` of their module, say about symbols.
  graph::SizeSymbols symbols(pybind11::handle module_meta) const;

 private:
  graph::SizeExpr size_of(const c10::SymInt& size);
  graph::ValueMeta tensor_of(const at::Tensor& tensor);
  graph::ValueMeta tensor_metadata_of(pybind11::handle metadata);
  graph::StackTrace stack_of(pybind11::handle text);

  std::unordered_map<std::string, graph::SizeExpr> sizes_;  // by text
  std::unordered_map<std::string, graph::StackTrace> stacks_;
  graph::StackTable stack_table_;
  graph::NamedOrigins origins_;
  pybind11::object shape_env_;
};

/// A stack as Python prints one, without the line that says it is a traceback; what
/// `node.meta['stack_trace']` holds.
std::string stack_text(const graph::StackTrace& stack);
graph::StackTrace stack_from_text(const std::string& text);

/// A tensor (FakeTensors of `mode`), number or tuple with the properties of an annotation
/// (docs/text_form.md); None if it mentions symbols, is not known, or is on a device that this
/// process does not have.
pybind11::object example_from_annotation(const std::string& annotation, pybind11::handle mode);

/// The metadata of a tensor whose sizes are numbers.
graph::TensorMeta tensor_meta_of(const at::Tensor& tensor);

}  // namespace assay::binding
