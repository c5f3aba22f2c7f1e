/// \file Exact answers to "do elements share memory?", within a tensor and between two. Used by
/// aten/overlapping_writes.cpp and autograd/shared_memory.cpp; at::has_internal_overlap gives up
/// where strides are irregular.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace assay::aten {

/// The number of places in memory from the first element to the last; none if there is no element.
std::int64_t extent_of(const at::Tensor& tensor);

/// True if two elements of `tensor` are at the same place.
bool overlaps_internally(const at::Tensor& tensor);

/// True if both tensors are in one storage, at the same place with the same strides.
bool has_same_elements(const at::Tensor& left, const at::Tensor& right);

/// True if an element of one tensor is at the place of an element of the other. Where the sizes of
/// their elements differ: if the ranges of their memory intersect.
bool overlap(const at::Tensor& left, const at::Tensor& right);

}  // namespace assay::aten
