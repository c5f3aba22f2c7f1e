// Joins the tables of decompositions and finds an operator's row.
#include <algorithm>
#include <string>
#include <vector>

#include "assay/error.h"
#include "autograd/decompositions/tables.h"
#include "graph/pass_manager.h"

namespace assay::autograd {

namespace {

const graph::RegisterPass decompositions_pass(
    {.name = "decompositions",
     .room = "autograd",
     .description = "makes operators of simpler ones while a program is traced"});

bool by_name(const Decomposition& left, const Decomposition& right) { return left.op < right.op; }

std::vector<Decomposition> join() {
  std::vector<Decomposition> rows;
  for (const DecompositionTable table :
       {activation_decompositions(), activation_backward_decompositions(),
        batch_norm_decompositions(), loss_backward_decompositions(), loss_decompositions(),
        nll_loss_decompositions(), norm_decompositions(), normalisation_decompositions(),
        resampling_decompositions(), softmax_decompositions()}) {
    for (Decomposition row : table) {
      row.is_of_floats = true;
      rows.push_back(row);
    }
  }
  for (const DecompositionTable table :
       {creation_decompositions(), indexing_decompositions(), matmul_decompositions(),
        pointwise_decompositions(), rearrangement_decompositions(), reduction_decompositions(),
        special_function_decompositions(), view_decompositions()}) {
    rows.insert(rows.end(), table.begin(), table.end());
  }
  std::sort(rows.begin(), rows.end(), by_name);
  const auto twice =
      std::adjacent_find(rows.begin(), rows.end(),
                         [](const auto& left, const auto& right) { return left.op == right.op; });
  if (twice != rows.end()) {
    throw InternalError("two decompositions of " + std::string(twice->op));
  }
  return rows;
}

bool is_plain(const at::Tensor& tensor) {
  return !tensor.defined() || (tensor.layout() == at::kStrided && !tensor.is_complex() &&
                               !tensor.is_quantized() && !tensor.is_neg());
}

}  // namespace

std::span<const Decomposition> decompositions() {
  static const std::vector<Decomposition> rows = join();
  return rows;
}

const Decomposition* find_decomposition(const c10::OperatorName& name) {
  // Every traced operator comes through here, so the name is compared in its two parts, and no
  // text is made of it.
  const std::string_view overload = name.overload_name;
  const auto parts = [](std::string_view op) {
    const std::size_t dot = op.find('.');
    return dot == op.npos ? std::pair(op, std::string_view())
                          : std::pair(op.substr(0, dot), op.substr(dot + 1));
  };
  const std::pair<std::string_view, std::string_view> wanted(name.name, overload);
  const auto rows = decompositions();
  const auto found = std::lower_bound(
      rows.begin(), rows.end(), wanted,
      [&](const Decomposition& row, const auto& value) { return parts(row.op) < value; });
  return found != rows.end() && parts(found->op) == wanted ? &*found : nullptr;
}

bool can_decompose(const Decomposition& row, std::span<const c10::IValue> arguments) {
  if (row.is_of_dense && !arguments.front().toTensor().is_non_overlapping_and_dense()) return false;
  const auto has_channels_last = [](const c10::IValue& argument) {
    return argument.isTensor() && argument.toTensor().defined() &&
           argument.toTensor().suggest_memory_format() != c10::MemoryFormat::Contiguous;
  };
  if (row.is_of_planes && std::ranges::any_of(arguments, has_channels_last)) return false;
  if (row.is_of_floats) {
    const auto first = std::ranges::find_if(arguments, &c10::IValue::isTensor);
    if (first != arguments.end() && first->toTensor().defined() &&
        !first->toTensor().is_floating_point()) {
      return false;
    }
  }
  return std::all_of(arguments.begin(), arguments.end(), [](const c10::IValue& argument) {
    if (argument.isTensor()) return is_plain(argument.toTensor());
    if (argument.isTensorList()) {
      const auto list = argument.toTensorVector();
      return std::all_of(list.begin(), list.end(), is_plain);
    }
    // A list of tensors with holes, as the indices of aten::index are.
    if (argument.isList()) {
      for (const c10::IValue& item : argument.toListRef()) {
        if (item.isTensor() && !is_plain(item.toTensor())) return false;
      }
    }
    return true;
  });
}

}  // namespace assay::autograd
