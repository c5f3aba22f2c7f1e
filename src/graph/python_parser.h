/// \file Reads Python text into a syntax tree, for graph/parse.h and the repro room.
///
/// It accepts the shape of any Python file, keeps in detail what graph files are made of (classes,
/// functions, assignments, calls, literals) and only the extent of the rest (loops, lambdas,
/// comprehensions). Nothing is ever executed, evaluated or imported.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/python_lexer.h"

namespace assay::graph::python {

/// A node of the tree: plain data, never destroyed one by one.
struct Expression {
  enum class Kind : std::uint8_t {
    name,       // text
    integer,    // magnitude
    floating,   // number
    imaginary,  // number
    string,     // value
    none,
    boolean,  // magnitude 0 or 1
    ellipsis,
    attribute,  // children[0] . text
    call,       // children[0] ( children[1..], keywords )
    subscript,  // children[0] [ children[1] ]
    slice,      // children: lower, upper, step (nullptr where absent)
    tuple,
    list,
    dict,     // children: key, value, key, value, ...
    unary,    // text children[0]
    binary,   // children[0] text children[1]
    compare,  // children[0] text children[1]
    starred,  // *children[0]
    missing,  // `<lambda>()`, `<function f at 0x7f>`: what stock prints for what it cannot write
    opaque,   // anything else: lambda, comprehension, conditional, f-string; text says which
  };
  struct Keyword {
    std::string_view name;  // empty for **mapping
    const Expression* value;
  };

  Kind kind;
  std::uint32_t depth = 1;
  std::size_t offset = 0;
  std::size_t end = 0;
  std::string_view text;
  std::uint64_t magnitude = 0;
  double number = 0;
  std::string_view value;
  std::span<const Expression* const> children;
  std::span<const Keyword> keywords;
};

struct Statement {
  enum class Kind : std::uint8_t {
    assign,       // targets = value, or target: annotation = value
    declaration,  // targets[0]: annotation
    augmented,    // targets[0] operation value
    expression,   // value
    returns,      // value (nullptr for a bare return)
    class_def,    // name, bases in value's children, body
    function,     // name, parameters, body
    with_block,   // value: the first item's expression; body
    if_block,     // value: the condition; body
    import,       // text only
    pass,
    other,  // text only, and body for a compound statement
  };
  struct Parameter {
    std::string_view name;
    const Expression* annotation = nullptr;
    const Expression* default_value = nullptr;
    std::size_t offset = 0;
  };

  Kind kind;
  std::size_t offset = 0;
  std::size_t end = 0;
  std::string_view name;
  std::string_view operation;
  std::vector<const Expression*> targets;
  const Expression* annotation = nullptr;
  const Expression* value = nullptr;
  std::vector<Parameter> parameters;
  std::vector<Statement> body;
};

/// A parsed file. Its expressions live in one arena (a file has hundreds of thousands of them) and
/// point into the `Source` it was made from.
struct Module {
  std::vector<Statement> statements;
  std::vector<Comment> comments;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> arena =
      std::make_unique<std::pmr::monotonic_buffer_resource>();
};

/// Throws `UserError` with the place and what was expected.
Module parse_module(const Source& source);

/// Parses a single expression, e.g. an annotation's contents. Trees live in `module`.
const Expression* parse_expression(const Source& source, Module& module);

/// The dotted name an expression spells (`torch.ops.aten.relu.default`), or empty.
std::string dotted_name(const Expression& expression);

}  // namespace assay::graph::python
