/// \file The functions that generated code calls and does not contain: those of libm, of Sleef
/// (which libtorch brings) and of ATen, for operators that are too rare or too long to be written
/// into every kernel. A library names them in `assay_import_names`; its loader puts their addresses
/// into `assay_imports`. So a library has no undefined symbols of its own.
#pragma once

#include <string>
#include <string_view>

#include "kernels/ir.h"

namespace assay::kernels {

/// The name of an imported function that computes `op` for vectors of `lanes` elements (f32 or
/// f64); empty if there is none.
std::string import_name(Op op, std::string_view element, int lanes);

/// The address of an imported function, or nullptr.
void* find_import(const std::string& name);

}  // namespace assay::kernels
