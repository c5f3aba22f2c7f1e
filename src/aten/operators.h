/// \file Operators by name: `torch.ops.aten.relu.default` is the dispatcher's `aten::relu`.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/error.h"
#include "graph/graph.h"

namespace assay::aten {

/// The operator that a target of the form `torch.ops.<namespace>.<name>.<overload>` names.
std::optional<c10::OperatorHandle> find_operator(const graph::Target& target);

/// Every overload of an operator, given as `aten::add`, sorted by overload name; empty if unknown.
std::vector<c10::OperatorHandle> overloads(const std::string& qualified_name);

/// Throws `UserError` for an operator that reaches out of the process: a graph file is data from
/// anywhere, and running it must not open files.
void check_is_harmless(const c10::OperatorHandle& op);

/// `torch.ops.aten.relu.default` for a handle.
std::string python_name(const c10::OperatorHandle& op);

/// The error for a target that names no operator: its name and the nearest known ones.
UserError unknown_operator(const std::string& target);

}  // namespace assay::aten
