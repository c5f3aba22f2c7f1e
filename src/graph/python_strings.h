/// \file Python's spelling of strings and floating point numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace assay::graph::python {

/// The contents of a string literal's body with escapes resolved (to UTF-8); empty if an escape is
/// wrong.
std::optional<std::string> unescape(std::string_view body);

/// `text` as Python's repr() would write it, with single quotes preferred.
std::string quote(std::string_view text);

/// `value` as Python's repr() would write it (`1e-05`, `3.0`), with `inf`, `-inf` and `nan`.
std::string float_text(double value);

}  // namespace assay::graph::python
