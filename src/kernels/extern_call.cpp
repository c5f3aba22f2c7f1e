#include "kernels/extern_call.h"

#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/mm_ops.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "assay/error.h"
#include "graph/copy_nodes.h"

namespace assay::kernels {

namespace {

const at::Tensor& operand_tensor(const OutArguments& arguments, std::size_t index) {
  return arguments.tensors[index].toTensor();
}

void mm_out(const OutArguments& arguments, at::Tensor& out) {
  at::_ops::mm_out::call(operand_tensor(arguments, 0), operand_tensor(arguments, 1), out);
}

void bmm_out(const OutArguments& arguments, at::Tensor& out) {
  at::_ops::bmm_out::call(operand_tensor(arguments, 0), operand_tensor(arguments, 1), out);
}

void addmm_out(const OutArguments& arguments, at::Tensor& out) {
  at::_ops::addmm_out::call(operand_tensor(arguments, 0), operand_tensor(arguments, 1),
                            operand_tensor(arguments, 2), arguments.beta, arguments.alpha, out);
}

void baddbmm_out(const OutArguments& arguments, at::Tensor& out) {
  at::_ops::baddbmm_out::call(operand_tensor(arguments, 0), operand_tensor(arguments, 1),
                              operand_tensor(arguments, 2), arguments.beta, arguments.alpha, out);
}

struct OutRow {
  std::string_view target;
  std::size_t tensors;
  OutFunction function;
};

constexpr std::array<OutRow, 4> out_rows = {{
    {"torch.ops.aten.mm.default", 2, &mm_out},
    {"torch.ops.aten.bmm.default", 2, &bmm_out},
    {"torch.ops.aten.addmm.default", 3, &addmm_out},
    {"torch.ops.aten.baddbmm.default", 3, &baddbmm_out},
}};

std::optional<c10::Scalar> out_number(const graph::Argument& argument) {
  if (const auto* number = argument.get_if<double>()) return c10::Scalar(*number);
  if (const auto* number = argument.get_if<std::int64_t>()) return c10::Scalar(*number);
  return std::nullopt;
}

bool takes_keywords(const graph::Node& node) {
  return std::ranges::all_of(node.kwargs(), [](const graph::NamedArgument& argument) {
    return (argument.name == "beta" || argument.name == "alpha") && out_number(argument.value);
  });
}

// The tensors among a call's results, by position: all of them if nothing is known.
std::vector<std::size_t> tensor_results(const ExternCall& call) {
  std::vector<std::size_t> positions;
  const auto& meta = call.node->meta.value.value;
  if (const auto* items = std::get_if<std::vector<graph::ValueMeta>>(&meta)) {
    for (std::size_t i = 0; i < items->size(); ++i) {
      if ((*items)[i].tensor() != nullptr) positions.push_back(i);
    }
  }
  return positions;
}

}  // namespace

OutFunction find_out_function(const ExternCall& call) {
  if (call.results.size() != 1 || call.node->op() != graph::Op::call_function) return nullptr;
  const auto row = std::ranges::find(out_rows, call.node->target().name(), &OutRow::target);
  if (row == out_rows.end()) return nullptr;
  const auto is_tensor = [](const auto& operand) {
    return std::holds_alternative<TensorRef>(operand);
  };
  const bool fits = call.operands.size() == row->tensors &&
                    call.node->args().size() == row->tensors && takes_keywords(*call.node) &&
                    std::ranges::all_of(call.operands, is_tensor);
  return fits ? row->function : nullptr;
}

OutScalars out_scalars(const ExternCall& call) {
  OutScalars scalars;
  for (const graph::NamedArgument& argument : call.node->kwargs()) {
    (argument.name == "beta" ? scalars.beta : scalars.alpha) = *out_number(argument.value);
  }
  return scalars;
}

std::vector<const graph::Node*> mentioned_nodes(const ExternCall& call,
                                                std::vector<std::size_t>& positions) {
  std::vector<const graph::Node*> nodes;
  std::unordered_set<const graph::Node*> seen;
  std::size_t position = 0;
  call.node->for_each_input([&](const graph::Node& input) {
    const std::size_t here = position++;
    if (input.op() == graph::Op::get_attr || !seen.insert(&input).second) return;
    nodes.push_back(&input);
    positions.push_back(here);
  });
  return nodes;
}

ExternRunner::ExternRunner(const ExternCall& call, const graph::Graph& graph,
                           const graph::python::Source* source)
    : graph_(std::make_unique<graph::Graph>()) {
  graph::NodeCopier copier(graph, *graph_);
  std::vector<std::size_t> positions;
  for (const graph::Node* input : mentioned_nodes(call, positions)) copier.copy_as_input(*input);
  call.node->for_each_input([&](const graph::Node& input) {
    if (!copier.has(input)) copier.copy(input);
  });
  graph::Node& copy = copier.copy(*call.node);
  if (call.results.empty() || copy.meta.value.tensor() != nullptr) {
    graph_->set_output(graph::Tuple{{graph::Argument(&copy)}});
  } else {
    std::vector<graph::Argument> items;
    for (std::size_t position : tensor_results(call)) {
      graph::Node& item = graph_->call_function(
          "operator.getitem",
          {graph::Argument(&copy), graph::Argument(static_cast<std::int64_t>(position))});
      items.emplace_back(&item);
    }
    internal_check(items.size() == call.results.size(), "a buffer for each tensor of the results");
    graph_->set_output(graph::Tuple{std::move(items)});
  }
  runner_ = std::make_unique<aten::GraphRunner>(*graph_, source);
}

}  // namespace assay::kernels
