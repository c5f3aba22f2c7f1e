/// \file The comments of the text form that mean something: `# File: ...` and `# From: ...` say
/// where nodes come from, `# Symbol: ...` and `# Tangents: ...` what a graph's inputs are. Used by
/// graph/parse.cpp and graph/print.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/meta.h"
#include "graph/python_lexer.h"
#include "graph/size_range.h"

namespace assay::graph {

/// `s77 = 4, VR[2, int_oo]`: the range as torch.export writes it, and the hint if there is one.
std::string symbol_text(const std::string& name, const SizeSymbol& symbol);

/// How stock PyTorch names the tangents of a joint graph. The only place that knows: everything
/// else asks for the node's role.
bool is_tangent_name(std::string_view name);

/// Follows the comments as statements are read; nodes inherit what stands above them.
class StackComments {
 public:
  explicit StackComments(const std::vector<python::Comment>& comments) : comments_(comments) {}

  /// Skips the comments before `offset`, without reading them.
  void start_at(std::size_t offset);

  /// Takes the comments before `offset` and updates what the following nodes inherit.
  void advance_to(std::size_t offset);

  StackTrace stack;
  Provenance provenance;
  SizeSymbols symbols;                               ///< Those described so far.
  std::optional<std::vector<std::string>> tangents;  ///< Parameters, if a comment names them.

 private:
  NamedOrigins origins_;
  const std::vector<python::Comment>& comments_;
  std::size_t next_ = 0;
};

}  // namespace assay::graph
