/// \file Where a compiled function begins: its capture, which the aten room does (aten/capture.h).
#pragma once

#include "aten/capture.h"

namespace assay::compile {

using aten::capture;
using aten::Captured;
using aten::CaptureOptions;
using aten::Function;

}  // namespace assay::compile
