/// \file Changes of a program's inputs: other sizes, other values.
#pragma once

#include <ATen/core/Tensor.h>

#include "reduce/candidate.h"
#include "repro/content_store.h"

namespace assay::reduce {

/// The tensor that the input describes; undefined if its contents are made up when it is loaded.
at::Tensor input_contents(const Candidate& program, std::size_t input,
                          const repro::ContentStore& store);

/// Gives the input a storage of its own, contiguous, with these contents, sizes and dtype.
void set_contents(Candidate& program, std::size_t input, const at::Tensor& contents,
                  repro::ContentStore& store);

/// Gives the input a storage of its own, contiguous, whose contents are made up when it is loaded.
void set_made_up(Candidate& program, std::size_t input, graph::TensorMeta meta);

/// The sizes as numbers; inputs of a program being reduced have no symbols.
std::vector<std::int64_t> sizes_of(const repro::TensorInput& input);

/// How many numbers all inputs hold.
std::int64_t count_elements(const Candidate& program);

}  // namespace assay::reduce
