/// \file The tables behind aten/torch_functions.h, one per theme; functions/find.cpp joins them.
#pragma once

#include <span>

#include "aten/torch_functions.h"

namespace assay::aten {

using FunctionTable = std::span<const TorchFunction>;

// Functions, by their qualified names.
FunctionTable activation_functions();
FunctionTable attention_functions();
FunctionTable builtin_functions();
FunctionTable creation_functions();
FunctionTable dropout_functions();
FunctionTable embedding_functions();
FunctionTable fold_functions();
FunctionTable fsdp_functions();
FunctionTable forwarded_functions();
FunctionTable grad_level_functions();
FunctionTable gpu_attention_functions();
FunctionTable gpu_convolution_functions();
FunctionTable gpu_functions();
FunctionTable gpu_normalization_functions();
FunctionTable gpu_raw_attention_functions();
FunctionTable gpu_recurrent_functions();
FunctionTable indexing_functions();
FunctionTable loss_functions();
FunctionTable margin_loss_functions();
FunctionTable math_functions();
FunctionTable normalisation_functions();
FunctionTable one_hot_functions();
FunctionTable operator_functions();
FunctionTable pooling_functions();
FunctionTable prim_functions();
FunctionTable dynamic_quantization_functions();
FunctionTable elementwise_prim_functions();
FunctionTable quantized_functions();
FunctionTable random_prim_functions();
FunctionTable resize_functions();
FunctionTable state_functions();
FunctionTable symbol_functions();
FunctionTable tensor_prim_functions();
FunctionTable torch_python_functions();
FunctionTable unique_functions();
FunctionTable vmap_functions();

// Methods of tensors, by their plain names; the first parameter is `self`.
FunctionTable builtin_methods();
FunctionTable cast_methods();
FunctionTable creation_methods();
FunctionTable gpu_methods();
FunctionTable indexing_methods();
FunctionTable math_methods();
FunctionTable operator_methods();
FunctionTable tensor_methods();
FunctionTable torch_python_methods();
FunctionTable unique_methods();

}  // namespace assay::aten
