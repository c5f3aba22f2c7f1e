/// \file The comments of the text form that say where nodes come from: `# File: ...`, `# From:
/// ...`. Used by graph/parse.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/meta.h"
#include "graph/python_lexer.h"

namespace assay::graph {

/// Follows the comments as statements are read; nodes inherit what stands above them.
class StackComments {
 public:
  explicit StackComments(const std::vector<python::Comment>& comments) : comments_(comments) {}

  /// Skips the comments before `offset`, without reading them.
  void start_at(std::size_t offset);

  /// Takes the comments before `offset` and updates what the following nodes inherit.
  void advance_to(std::size_t offset);

  std::vector<StackFrame> stack;
  std::vector<std::string> provenance;

 private:
  const std::vector<python::Comment>& comments_;
  std::size_t next_ = 0;
};

}  // namespace assay::graph
