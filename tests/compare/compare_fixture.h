/// \file What the tests of compare share: graphs from text, values from tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "aten/runner.h"
#include "compare/models.h"
#include "graph/parse.h"

namespace assay::compare {

inline std::unique_ptr<graph::Graph> graph_of(const std::string& parameters,
                                              const std::string& lines) {
  return graph::parse(
      "class Repro(torch.nn.Module):\n    def forward(self, " + parameters + "):\n" + lines,
      "<test>");
}

inline aten::Value value(const at::Tensor& tensor) { return c10::IValue(tensor); }

inline aten::Value list(std::vector<aten::Value> items) {
  return aten::Value::sequence(aten::Value::Kind::list, std::move(items));
}

inline aten::Value dict(std::vector<std::string> keys, std::vector<aten::Value> items) {
  aten::Value made = aten::Value::sequence(aten::Value::Kind::dict, std::move(items));
  made.keys = std::move(keys);
  return made;
}

/// A graph as a program. The graph must outlive it.
inline Callable program(const graph::Graph& graph) {
  return [runner = std::make_shared<aten::GraphRunner>(graph)](std::vector<aten::Value> inputs) {
    return runner->run(std::move(inputs));
  };
}

}  // namespace assay::compare
