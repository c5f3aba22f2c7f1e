/// \file The arguments of one call in a repro file, read by position and name. Used by
/// repro/repro_file.cpp and repro/input_syntax.cpp.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/argument.h"
#include "graph/parse.h"
#include "graph/python_parser.h"

namespace assay::repro {

class Call {
 public:
  using Expression = graph::python::Expression;
  using Source = graph::python::Source;

  Call(const Source& source, const Expression& call) : source_(source), call_(call) {}

  std::string callee() const { return graph::python::dotted_name(*call_.children[0]); }
  std::size_t positional() const { return call_.children.size() - 1; }
  const Expression* argument(std::size_t position, std::string_view keyword) const;
  const Expression& required(std::size_t position, std::string_view keyword) const;

  UserError error(const Expression& at, const std::string& message) const {
    return source_.error(at.offset, at.end - at.offset, message);
  }

  /// An argument that we do not know could change what the values are.
  void refuse_others(std::initializer_list<std::string_view> known) const;

  graph::SizeExpr size(const Expression& expression) const;
  std::vector<graph::SizeExpr> sizes(const Expression& expression) const;
  template <typename T>
  std::optional<T> constant(std::size_t position, std::string_view keyword,
                            const char* expected) const {
    const Expression* given = argument(position, keyword);
    if (given == nullptr || given->kind == Expression::Kind::none) return std::nullopt;
    const graph::Argument value = graph::constant_from_syntax(source_, *given);
    if (const T* found = value.get_if<T>()) return *found;
    throw error(*given, std::string("expected ") + expected);
  }
  bool flag(std::string_view keyword, bool fallback) const {
    return constant<bool>(kKeywordOnly, keyword, "True or False").value_or(fallback);
  }
  c10::Device device(std::size_t position, std::string_view keyword) const;

  static constexpr std::size_t kKeywordOnly = 1000;

 private:
  const Source& source_;
  const Expression& call_;
};

}  // namespace assay::repro
