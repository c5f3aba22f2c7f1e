/// \file Reads Python expressions from tokens, by recursive descent. Internal to
/// graph/python_parser.cpp, which reads statements on top of it. Atoms (names, literals and what
/// stands in brackets) have a file of their own, python_atoms.cpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/python_parser.h"

namespace assay::graph::python {

// Bounds recursion in everything that later walks a tree.
inline constexpr std::uint32_t kMaxDepth = 200;

class ExpressionParser {
 public:
  using Kind = Expression::Kind;

  ExpressionParser(const Source& source, Module& module) : source_(source), module_(module) {
    TokenStream stream = tokenize(source);
    tokens_ = std::move(stream.tokens);
    module_.comments = std::move(stream.comments);
  }

  const Expression* lone_expression();

 protected:
  // ---- tokens ----
  const Token& token() const { return tokens_[next_]; }
  const Token& token(std::size_t ahead) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool at(TokenKind kind) const { return token().kind == kind; }
  bool at(std::string_view text) const { return token().is(text); }
  bool accept(std::string_view text) {
    if (!at(text)) return false;
    ++next_;
    return true;
  }
  std::size_t previous_end() const;
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;
  void expect(std::string_view text);
  std::string_view expect_name(const char* what);

  // ---- expressions ----
  Expression& make(Kind kind, std::size_t offset);

  // Items collected while a bracket is read: a stack, since brackets nest.
  template <typename Item>
  class Collector {
   public:
    Collector(ExpressionParser& parser, std::vector<Item>& stack)
        : parser_(parser), stack_(stack), begin_(stack.size()) {}
    ~Collector() { stack_.resize(begin_); }
    Collector(const Collector&) = delete;
    Collector& operator=(const Collector&) = delete;

    void add(const Item& item) { stack_.push_back(item); }
    std::size_t size() const { return stack_.size() - begin_; }
    const Item& front() const { return stack_[begin_]; }
    std::span<const Item> keep() const {
      return parser_.keep(std::span<const Item>(stack_).subspan(begin_));
    }

   private:
    ExpressionParser& parser_;
    std::vector<Item>& stack_;
    std::size_t begin_;
  };
  using Children = Collector<const Expression*>;
  using Keywords = Collector<Expression::Keyword>;

  template <typename Item>
  std::span<const Item> keep(std::span<const Item> items) {
    Item* copy = std::pmr::polymorphic_allocator<Item>(module_.arena.get()).allocate(items.size());
    std::uninitialized_copy(items.begin(), items.end(), copy);
    return {copy, items.size()};
  }
  std::span<const Expression* const> children(std::initializer_list<const Expression*> expressions);
  const Expression* finish(Expression& made);

  // One expression, or several with commas between them: a tuple.
  const Expression* expression_list();
  bool ends_expression_list() const;
  const Expression* starred_expression();
  const Expression* expression();
  // `primals_4: f32[]`, as PyTorch 2.0 logs a scalar, is no Python outside of an annotation.
  const Expression* annotation();

  // From the loosest operator to the tightest.
  const Expression* conditional();
  const Expression* boolean_operation();
  const Expression* comparison();
  std::string_view comparison_operator();
  const Expression* binary(int precedence);
  const Expression* unary();
  const Expression* power();
  const Expression* primary();
  const Expression* call(const Expression* callee, std::size_t begin);
  const Expression* subscript_index();
  const Expression* slice_or_expression();
  // A module as repr() prints it: `Sequential((0): Linear(...) (1): ReLU())`, and equal members
  // together, `(0-3): 4 x Linear(...)`. Stock PyTorch writes that where a constructor should stand.
  bool at_printed_member() const;
  void printed_member(Keywords& keywords);

  // What a graph cannot contain, and what nobody needs to understand.
  const Expression* opaque(std::size_t begin, std::string_view what);
  // A lambda: its tokens up to where an expression ends.
  const Expression* skip_opaque(std::string_view what);

  // ---- atoms (python_atoms.cpp) ----
  const Expression* atom();
  // Stock PyTorch writes `<lambda>()` where it cannot print a subgraph, and `<function f at 0x7f>`
  // for an object that has no text.
  const Expression* missing_object(std::size_t begin);
  const Expression* sequence(Kind kind, std::string_view closing, std::size_t begin);
  const Expression* dict_or_set(std::size_t begin);
  // After the first element of a bracket, at `for`: skips to the closing bracket.
  const Expression* comprehension(std::size_t begin);
  const Expression* number();
  const Expression* string();

  const Source& source_;
  Module& module_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  std::uint32_t nesting_ = 0;
  std::uint32_t printed_members_ = 0;  // around what is being read
  bool is_annotation_ = false;         // what is being read
  std::vector<const Expression*> children_;
  std::vector<Expression::Keyword> keywords_;
};

}  // namespace assay::graph::python
