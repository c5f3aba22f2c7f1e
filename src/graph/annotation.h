/// \file The short text for a value's metadata, as FX's readable form has it.
///
/// `f32[8, 16][16, 1]cpu` is a float tensor with sizes and strides on the CPU; ` storage_offset=4`
/// and ` requires_grad` may follow (our additions); `Sym(s77)` is an integer; `(f32[4][1]cpu,
/// i64[4][1]cpu)` several values. The strides and the device may be left out: contiguous, on the
/// CPU.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/meta.h"
#include "graph/python_parser.h"

namespace assay::graph {

/// The annotation of a known value.
std::string annotation_text(const ValueMeta& meta);

/// Reads an annotation; nothing if it is not one of ours (any other Python annotation is allowed in
/// a file and means nothing here).
std::optional<ValueMeta> parse_annotation(std::string_view text);

/// The integer expression a syntax tree spells, e.g. `32*s77`; nothing if it is not one.
std::optional<SizeExpr> size_from_syntax(const python::Expression& expression);

}  // namespace assay::graph
