/// \file Writes a repro file that stock PyTorch runs and repro/repro_file.h reads back.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "graph/print.h"
#include "repro/content_store.h"
#include "repro/repro_file.h"

namespace assay::repro {

/// The whole file as text: imports, settings, classes, load_args and the call of run_repro.
std::string print_repro_file(const ReproFile& file, const graph::PrintOptions& options = {});

/// The tensor's storage, without its contents.
StorageSpec describe_storage(const at::Tensor& tensor);
/// The tensor, as a view of the file's storage with that index.
TensorInput describe_input(const at::Tensor& tensor, std::size_t storage);

/// Describes tensors as inputs, adding one storage for each that they share; with a store the
/// contents are saved too.
void add_tensor_inputs(ReproFile& file, const std::vector<at::Tensor>& tensors,
                       ContentStore* store = nullptr);

}  // namespace assay::repro
