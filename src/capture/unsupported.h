/// \file What a user reads about a break: under `fullgraph` as assay.Unsupported, otherwise in the
/// log. Called when a segment has ended.
#pragma once

#include <string>
#include <vector>

#include "capture/code_facts.h"
#include "capture/cpython_311.h"
#include "capture/segment.h"

namespace assay::capture {

/// The class of the exception for breaks under `fullgraph`.
void set_unsupported_class(PyObject* type);

/// What can be done about a break.
std::string hint_about(const BreakReason& reason, const std::vector<CodeLine>& stack);

/// Lines as a Python traceback shows them, each after a line feed.
std::string text_of(const std::vector<CodeLine>& stack);

/// Raises assay.Unsupported.
void raise_unsupported(const BreakReason& reason, const std::vector<CodeLine>& stack);

}  // namespace assay::capture
