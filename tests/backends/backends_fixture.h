/// \file Small programs and their inputs, run with any backend, forward and backward.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "aten/value.h"
#include "backends/compile.h"
#include "graph/graph.h"
#include "graph/parse.h"

namespace assay::backends {

inline std::shared_ptr<const graph::Graph> graph_of(const std::string& parameters,
                                                    const std::string& body,
                                                    const std::string& constructor = "") {
  return graph::parse("class Repro(torch.nn.Module):\n" + constructor + "    def forward(self, " +
                          parameters + "):\n" + body,
                      "f.py");
}

/// Results and gradients of one call.
struct Called {
  std::vector<at::Tensor> results;
  std::vector<at::Tensor> gradients;
};

/// Two calls of a compiled graph on copies of `inputs`, all of which require grad; the second's
/// results (TorchScript compiles at the second call).
Called call(const std::string& backend, const std::shared_ptr<const graph::Graph>& graph,
            const std::vector<at::Tensor>& inputs);

void expect_equal(const Called& found, const Called& expected);

/// Linear, LayerNorm, dropout that is off, relu and a few views: its graph and inputs.
std::shared_ptr<const graph::Graph> model();
std::vector<at::Tensor> model_inputs();

}  // namespace assay::backends
