/// \file `getattr(x, name)`: attributes of tensors, dtypes and devices.
#pragma once

#include <string_view>

#include "aten/value.h"

namespace assay::aten {

/// The attribute's value. Throws `UserError` if there is none of that name, or only Python knows
/// it.
Value get_attribute(const Value& object, std::string_view name);

}  // namespace assay::aten
