/// \file `assay._C.Graph`: a graph as Python holds one, read from text or made from a
/// torch.fx.GraphModule. Behind `assay.Graph` and `assay.fx`.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aten/runner.h"
#include "fx_graph.h"

namespace assay::binding {

class GraphHandle {
 public:
  explicit GraphHandle(GraphAndObjects source) : source_(std::move(source)) {}

  const GraphAndObjects& source() const { return source_; }
  std::string code() const;
  /// Runs with ATen. It is planned at the first run, unless `plan` did it before.
  pybind11::object run(const pybind11::args& inputs);
  /// Throws `UserError` if it cannot run without Python.
  void plan();
  /// The graph with its tensors as additional, last inputs, and those tensors.
  std::pair<std::unique_ptr<GraphHandle>, std::vector<at::Tensor>> lifted() const;

 private:
  GraphAndObjects source_;
  std::shared_ptr<const graph::Graph> planned_;  // what `runner_` runs
  std::unique_ptr<aten::GraphRunner> runner_;
};

void add_graph(pybind11::module_& module);

}  // namespace assay::binding
