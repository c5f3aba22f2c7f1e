/// \file Which strings may be names in the text form.
#pragma once

#include <string>
#include <string_view>

namespace assay::graph {

/// True for a Python identifier that is not a keyword.
bool is_python_identifier(std::string_view text);

/// True for a name that the text form gives another meaning (`torch`, `self`, `inf`, `device`,
/// ...), so that a node must not have it.
bool is_reserved_name(std::string_view text);

/// `wish` turned into a name a node may have: other characters become `_`, a leading digit or a
/// keyword or reserved name gets an underscore.
std::string python_identifier(std::string_view wish);

}  // namespace assay::graph
