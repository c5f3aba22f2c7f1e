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
#include "kernels/matmul.h"

namespace assay::kernels {

namespace {

const at::Tensor& operand_tensor(const OutArguments& arguments, std::size_t index) {
  return arguments.tensors[index].toTensor();
}

void mm_out(const OutArguments& arguments, at::Tensor& out) {
  at::_ops::mm_out::call(operand_tensor(arguments, 0), operand_tensor(arguments, 1), out);
}

void onednn_out(const OutArguments& arguments, at::Tensor& out) {
  multiply_by_onednn(operand_tensor(arguments, 0), operand_tensor(arguments, 1), out);
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

}  // namespace

OutFunction find_out_function(const ExternCall& call) {
  if (call.results.size() != 1 || call.results[0] == kNoBuffer || !call.writes.empty() ||
      call.node->op() != graph::Op::call_function)
    return nullptr;
  const auto row = std::ranges::find(out_rows, call.node->target().name(), &OutRow::target);
  if (row == out_rows.end()) return nullptr;
  const auto is_tensor = [](const auto& operand) {
    return std::holds_alternative<TensorRef>(operand);
  };
  const bool fits = call.operands.size() == row->tensors &&
                    call.node->args().size() == row->tensors && takes_keywords(*call.node) &&
                    std::ranges::all_of(call.operands, is_tensor);
  if (!fits) return nullptr;
  const bool is_product = row->function == &mm_out || row->function == &bmm_out;
  return is_product && prefers_onednn(std::get<TensorRef>(call.operands[0]),
                                      std::get<TensorRef>(call.operands[1]))
             ? &onednn_out
             : row->function;
}

bool is_onednn_product(const ExternCall& call) { return find_out_function(call) == &onednn_out; }

OutScalars out_scalars(const ExternCall& call) {
  OutScalars scalars;
  for (const graph::NamedArgument& argument : call.node->kwargs()) {
    (argument.name == "beta" ? scalars.beta : scalars.alpha) = *out_number(argument.value);
  }
  return scalars;
}

std::vector<MentionedNode> mentioned_nodes(const ExternCall& call) {
  std::vector<MentionedNode> mentioned;
  std::unordered_set<const graph::Node*> seen;
  std::size_t position = 0;
  call.node->for_each_input([&](const graph::Node& input) {
    const std::size_t here = position++;
    const bool is_subgraph = input.op() == graph::Op::get_attr &&
                             !std::holds_alternative<TensorRef>(call.operands[here]);
    if (!is_subgraph && seen.insert(&input).second) mentioned.push_back({&input, here});
  });
  return mentioned;
}

ExternRunner::ExternRunner(const ExternCall& call, const graph::Graph& graph,
                           std::span<const std::optional<std::size_t>> items,
                           const graph::python::Source* source)
    : graph_(std::make_unique<graph::Graph>()) {
  graph::NodeCopier copier(graph, *graph_);
  for (const MentionedNode& mentioned : mentioned_nodes(call)) {
    copier.copy_as_input(*mentioned.node);
  }
  call.node->for_each_input([&](const graph::Node& input) {
    if (!copier.has(input)) copier.copy(input);
  });
  graph::Node& copy = copier.copy(*call.node);
  std::vector<graph::Argument> wanted;
  for (const std::optional<std::size_t>& item : items) {
    if (!item) {
      wanted.emplace_back(&copy);
      continue;
    }
    const auto position = static_cast<std::int64_t>(*item);
    wanted.emplace_back(&graph_->call_function(
        "operator.getitem", {graph::Argument(&copy), graph::Argument(position)}));
  }
  graph_->set_output(graph::Tuple{std::move(wanted)});
  runner_ = std::make_unique<aten::GraphRunner>(*graph_, source);
}

}  // namespace assay::kernels
