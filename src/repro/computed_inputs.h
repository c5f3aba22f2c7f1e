/// \file Inputs that a file computes before it calls its program: `x = torch.rand(2, 3) * 2 - 1;
/// mod(x, x > 0)`. What computes them is read as a graph of its own and run, as any graph is,
/// without Python. Used by repro/input_syntax.h where nothing simpler describes the inputs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "aten/value.h"
#include "graph/python_parser.h"
#include "repro/repro_file.h"

namespace assay::repro {

class ComputedInputs {
 public:
  using Expression = graph::python::Expression;
  using Statement = graph::python::Statement;

  /// Notes about devices are added to `file`.
  explicit ComputedInputs(ReproFile& file) : file_(file), source_(*file.source) {}

  /// A statement at the top of the file.
  void top_level(const Statement& statement);
  /// The values that the first call with `count` arguments gets; nothing if there is none, or if
  /// what computes them is not a graph.
  std::optional<std::vector<aten::Value>> take(std::size_t count) const;

 private:
  void find_calls(const Expression& expression);
  std::string text_of(const Expression& expression) const;
  bool is_constant(const Expression& expression) const;
  bool write_operand(const Expression& expression, std::map<std::string, std::string>& nodes,
                     std::string& body, std::string& into) const;
  std::optional<std::vector<aten::Value>> compute(
      const std::vector<const Expression*>& arguments) const;

  ReproFile& file_;
  const graph::python::Source& source_;
  std::map<std::string, const Expression*, std::less<>> assigned_;
  std::vector<std::vector<const Expression*>> calls_;
  std::vector<const Expression*> starred_;  ///< `args` of mod(*args).
};

}  // namespace assay::repro
