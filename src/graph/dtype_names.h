/// \file PyTorch's names for dtypes, layouts and memory formats, both ways.
#pragma once

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace assay::graph {

/// `float32`, `int64`, ...
std::string_view dtype_name(c10::ScalarType dtype);
/// Accepts PyTorch's aliases too (`float`, `long`, `half`, ...).
std::optional<c10::ScalarType> dtype_from_name(std::string_view name);

/// The short form of annotations: `f32`, `i64`, `b8`, ...
std::string_view dtype_abbreviation(c10::ScalarType dtype);
std::optional<c10::ScalarType> dtype_from_abbreviation(std::string_view text);

/// `strided`, `sparse_coo`, ...
std::string_view layout_name(c10::Layout layout);
std::optional<c10::Layout> layout_from_name(std::string_view name);

/// `contiguous_format`, `channels_last`, ...
std::string_view memory_format_name(c10::MemoryFormat format);
std::optional<c10::MemoryFormat> memory_format_from_name(std::string_view name);

}  // namespace assay::graph
