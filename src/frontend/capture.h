/// \file Where a compiled function begins: its capture, which the aten room does (aten/capture.h).
#pragma once

#include "aten/capture.h"

namespace assay::frontend {

using aten::capture;
using aten::Captured;
using aten::CaptureOptions;
using aten::Function;
using aten::is_capturing;

}  // namespace assay::frontend
