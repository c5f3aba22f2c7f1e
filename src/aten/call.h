/// \file Calls one operator with Python values.
#pragma once

#include <string>
#include <string_view>

#include "aten/match.h"
#include "aten/value.h"

namespace assay::aten {

/// Calls the operator `qualified_name` (`aten::dropout`), choosing the overload by the arguments.
/// Throws `UserError` if the operator is unknown or no overload fits.
Value call(const std::string& qualified_name, const Arguments& arguments,
           Dialect dialect = Dialect::function);

/// Makes a matched call. Several results come back as a tuple, none as None.
Value call(Match match);

/// What an operator left on its stack, as one value.
Value results_to_value(std::vector<c10::IValue> results);

}  // namespace assay::aten
