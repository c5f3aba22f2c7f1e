// Finds the implementation of a Python-level function or method by its name.
#include <unordered_map>

#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

using Index = std::unordered_map<std::string_view, const TorchFunction*>;

void add(Index& index, FunctionTable table) {
  for (const TorchFunction& function : table) {
    const bool is_new = index.emplace(function.name, &function).second;
    if (!is_new) throw InternalError("two implementations of " + std::string(function.name));
  }
}

const Index& functions() {
  static const Index index = [] {
    Index made;
    for (const FunctionTable table : {activation_functions(),
                                      attention_functions(),
                                      builtin_functions(),
                                      creation_functions(),
                                      dropout_functions(),
                                      embedding_functions(),
                                      fold_functions(),
                                      forwarded_functions(),
                                      fsdp_functions(),
                                      indexing_functions(),
                                      loss_functions(),
                                      margin_loss_functions(),
                                      math_functions(),
                                      normalisation_functions(),
                                      operator_functions(),
                                      pooling_functions(),
                                      prim_functions(),
                                      random_prim_functions(),
                                      resize_functions(),
                                      state_functions(),
                                      symbol_functions(),
                                      tensor_prim_functions(),
                                      torch_python_functions(),
                                      unique_functions(),
                                      gpu_attention_functions(),
                                      gpu_convolution_functions(),
                                      gpu_functions(),
                                      gpu_normalization_functions(),
                                      gpu_raw_attention_functions(),
                                      gpu_recurrent_functions(),
                                      vmap_functions(),
                                      grad_level_functions(),
                                      quantized_functions(),
                                      one_hot_functions(),
                                      dynamic_quantization_functions(),
                                      elementwise_prim_functions()}) {
      add(made, table);
    }
    return made;
  }();
  return index;
}

const Index& methods() {
  static const Index index = [] {
    Index made;
    for (const FunctionTable table :
         {builtin_methods(), cast_methods(), creation_methods(), indexing_methods(), math_methods(),
          operator_methods(), tensor_methods(), torch_python_methods(), unique_methods(),
          gpu_methods()}) {
      add(made, table);
    }
    return made;
  }();
  return index;
}

const TorchFunction* find(const Index& index, std::string_view name) {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

// `rest` after `prefix`, or nothing.
std::string_view after(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string_view();
}

}  // namespace

const TorchFunction* find_torch_function(std::string_view name) {
  if (const TorchFunction* found = find(functions(), name)) return found;
  // FX names what is outside torch with underscores: `math_trunc` for math.trunc.
  if (const auto rest = after(name, "math_"); !rest.empty()) {
    return find(functions(), "math." + std::string(rest));
  }
  if (const auto rest = after(name, "_operator_"); !rest.empty()) {
    return find(functions(), "operator." + std::string(rest));
  }
  if (const auto rest = after(name, "torch.functional."); !rest.empty()) {
    return find(functions(), "torch." + std::string(rest));
  }
  if (const auto rest = after(name, "torch.Tensor."); !rest.empty()) return find_torch_method(rest);
  // Below Tensor, where methods written in Python do not exist and their names mean the operator.
  if (const auto rest = after(name, "torch._C._TensorBase."); !rest.empty()) {
    return is_python_method(rest) ? nullptr : find_torch_method(rest);
  }
  return nullptr;
}

const TorchFunction* find_torch_method(std::string_view name) { return find(methods(), name); }

}  // namespace assay::aten
