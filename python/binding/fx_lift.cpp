// Tensor attributes become inputs, so that whoever runs the graph without Python has their values.
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>

#include "fx_graph.h"
#include "fx_meta.h"

namespace py = pybind11;

namespace assay::binding {

using graph::Op;

std::pair<std::shared_ptr<const graph::Graph>, std::vector<at::Tensor>> lift_attributes(
    const GraphAndObjects& source) {
  auto graph = source.graph->clone();
  const auto first_call = std::ranges::find_if(
      graph->nodes(), [](const graph::Node& node) { return node.op() != Op::placeholder; });
  std::vector<at::Tensor> tensors;
  std::map<std::string, graph::Node*> inputs;
  std::vector<graph::Node*> replaced;
  {
    const graph::Graph::InsertBefore here(*graph, *first_call);
    for (graph::Node& node : graph->nodes()) {
      if (node.op() != Op::get_attr) continue;
      const auto object = source.objects.find(node.target().name());
      if (object == source.objects.end() || !THPVariable_Check(object->second.ptr())) continue;
      graph::Node*& input = inputs[object->first];
      if (input == nullptr) {
        tensors.push_back(THPVariable_Unpack(object->second.ptr()));
        input = &graph->placeholder(object->first);
        input->meta.value = {tensor_meta_of(tensors.back())};
      }
      node.replace_all_uses_with(*input);
      replaced.push_back(&node);
    }
  }
  for (graph::Node* node : replaced) graph->erase(*node);
  std::erase_if(graph->attributes(),
                [&](const graph::Attribute& attribute) { return inputs.contains(attribute.name); });
  return {std::move(graph), std::move(tensors)};
}

}  // namespace assay::binding
