/// \file Forwards a call as it is to an operator, whose schema then binds the arguments.
#pragma once

#include <string>

#include "aten/torch_functions.h"

namespace assay::aten {

/// The parameter list of a function that forwards everything.
inline constexpr std::string_view kEverything = "*args, **kwargs";

/// Calls an operator with what `args` and `kwargs` hold.
Value forward_to(const std::string& op, const BoundArguments& arguments,
                 Dialect dialect = Dialect::function);

}  // namespace assay::aten
