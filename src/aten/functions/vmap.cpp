// vmap as Dynamo leaves it in a graph: its levels are entered, tensors get a batch dimension that
// the operators between do not see, and lose it again. The levels are libtorch's own.
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>

#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

namespace functorch = at::functorch;

functorch::RandomnessType randomness_of(const std::string& name) {
  if (name == "error") return functorch::RandomnessType::Error;
  if (name == "same") return functorch::RandomnessType::Same;
  if (name == "different") return functorch::RandomnessType::Different;
  throw UserError("vmap's randomness is 'error', 'same' or 'different', not '" + name + "'");
}

Value increment_nesting(const BoundArguments& arguments) {
  return Operand(functorch::initAndPushDynamicLayer(functorch::TransformType::Vmap,
                                                    c10::SymInt(arguments.integer("batch_size")),
                                                    randomness_of(arguments.text("randomness"))))
      .value;
}

Value decrement_nesting(const BoundArguments&) {
  const auto layer = functorch::maybeCurrentDynamicLayer();
  if (!layer || layer->key() != functorch::TransformType::Vmap) {
    throw UserError("_vmap_decrement_nesting() without _vmap_increment_nesting() before it");
  }
  return Operand(functorch::popDynamicLayerAndDeleteMetadata().layerId()).value;
}

std::int64_t level_of(const BoundArguments& arguments) {
  const std::int64_t level = arguments.integer("level");
  if (level < 1 || level > static_cast<std::int64_t>(functorch::getDynamicLayerStack().size())) {
    throw UserError("vmap's level " + std::to_string(level) + " is not entered here");
  }
  return level;
}

Value add_batch_dim(const BoundArguments& arguments) {
  const at::Tensor tensor = arguments.tensor("self");
  std::int64_t dim = arguments.integer("batch_dim");
  if (dim < 0) dim += tensor.dim();
  if (dim < 0 || dim >= tensor.dim()) {
    throw UserError("vmap over dimension " + std::to_string(dim) + " of a tensor that has " +
                    std::to_string(tensor.dim()));
  }
  return Operand(functorch::addBatchDim(tensor, dim, level_of(arguments))).value;
}

// A tensor that does not depend on the level is the same for every element of the batch.
Value remove_batch_dim(const BoundArguments& arguments) {
  const at::Tensor tensor = arguments.tensor("self");
  const std::int64_t level = level_of(arguments);
  std::int64_t dim = arguments.integer("out_dim");
  if (dim < 0) dim += tensor.dim() + 1;
  if (dim < 0 || dim > tensor.dim()) throw UserError("vmap's out_dim is not a dimension");
  const functorch::BatchedTensorImpl* batched = functorch::maybeGetBatchedImpl(tensor);
  if (batched == nullptr || batched->level() < level) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.insert(sizes.begin() + dim, arguments.integer("batch_size"));
    return Operand(tensor.unsqueeze(dim).expand(sizes)).value;
  }
  if (batched->level() != level) {
    throw UserError("vmap's levels are left in another order than they were entered");
  }
  return Operand(batched->value().movedim(batched->bdim(), dim)).value;
}

Value nothing_to_load(const BoundArguments&) { return {}; }

constexpr std::string_view kIncrement = "batch_size, randomness";
constexpr std::string_view kAdd = "self, batch_dim, level";
constexpr std::string_view kRemove = "self, level, batch_size, out_dim";

constexpr std::array kVmapFunctions = std::to_array<TorchFunction>({
    {"torch._functorch.predispatch._vmap_increment_nesting", kIncrement, increment_nesting},
    {"torch._functorch.predispatch._vmap_decrement_nesting", "", decrement_nesting},
    {"torch._functorch.predispatch._add_batch_dim", kAdd, add_batch_dim},
    {"torch._functorch.predispatch._remove_batch_dim", kRemove, remove_batch_dim},
    {"torch._functorch.predispatch.lazy_load_decompositions", "", nothing_to_load},
    {"torch._functorch.vmap.lazy_load_decompositions", "", nothing_to_load},
    {"torch._C._functorch._vmap_increment_nesting", kIncrement, increment_nesting},
    {"torch._C._functorch._vmap_decrement_nesting", "", decrement_nesting},
    {"torch._C._functorch._add_batch_dim", kAdd, add_batch_dim},
    {"torch._C._functorch._remove_batch_dim", kRemove, remove_batch_dim},
});

}  // namespace

FunctionTable vmap_functions() { return kVmapFunctions; }

}  // namespace assay::aten
