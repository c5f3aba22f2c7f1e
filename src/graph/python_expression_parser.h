/// \file Reads Python expressions from tokens, by recursive descent. Internal to
/// graph/python_parser.cpp, which reads statements on top of it.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/python_names.h"
#include "graph/python_parser.h"
#include "graph/python_strings.h"

namespace assay::graph::python {

// Bounds recursion in everything that later walks a tree.
inline constexpr std::uint32_t kMaxDepth = 200;
// Of the members that `(0-3): 4 x Linear(...)` stands for.
inline constexpr std::uint32_t kMaxPrintedMembers = 1000;

inline int binary_precedence(const Token& token) {
  if (token.kind != TokenKind::punctuation) return 0;
  const std::string_view op = token.text;
  if (op.size() == 2) return op == "<<" || op == ">>" ? 4 : op == "//" ? 6 : 0;
  if (op.size() != 1) return 0;
  switch (op[0]) {
    case '|':
      return 1;
    case '^':
      return 2;
    case '&':
      return 3;
    case '+':
    case '-':
      return 5;
    case '*':
    case '/':
    case '%':
    case '@':
      return 6;
    default:
      return 0;
  }
}

class ExpressionParser {
 public:
  using Kind = Expression::Kind;

  ExpressionParser(const Source& source, Module& module) : source_(source), module_(module) {
    TokenStream stream = tokenize(source);
    tokens_ = std::move(stream.tokens);
    module_.comments = std::move(stream.comments);
  }

  const Expression* lone_expression() {
    const Expression* result = expression_list();
    while (at(TokenKind::newline)) ++next_;
    if (!at(TokenKind::end)) fail("expected the end of the expression");
    return result;
  }

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
  std::size_t previous_end() const {
    const Token& previous = tokens_[next_ - 1];
    // A string's text lies between its quotes; the next token's start is a good enough end.
    return previous.kind == TokenKind::string ? token().offset
                                              : previous.offset + previous.text.size();
  }

  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
    const Token& found = token();
    std::string shown;
    switch (found.kind) {
      case TokenKind::newline:
        shown = "the end of the line";
        break;
      case TokenKind::end:
        shown = "the end of the file";
        break;
      case TokenKind::indent:
        shown = "more indentation";
        break;
      case TokenKind::dedent:
        shown = "less indentation";
        break;
      default:
        shown = "'" + std::string(found.text.substr(0, 40)) + "'";
    }
    throw source_.error(found.offset, std::max<std::size_t>(found.text.size(), 1),
                        message + " but found " + shown, hint);
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail("expected '" + std::string(text) + "'");
  }
  std::string_view expect_name(const char* what) {
    if (!at(TokenKind::name) || !is_python_identifier(token().text)) {
      fail(std::string("expected ") + what);
    }
    return tokens_[next_++].text;
  }

  // ---- expressions ----
  Expression& make(Kind kind, std::size_t offset) {
    Expression* made =
        std::pmr::polymorphic_allocator<Expression>(module_.arena.get()).new_object<Expression>();
    made->kind = kind;
    made->offset = offset;
    return *made;
  }

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
  std::span<const Expression* const> children(
      std::initializer_list<const Expression*> expressions) {
    return keep(std::span<const Expression* const>(expressions.begin(), expressions.size()));
  }
  const Expression* finish(Expression& made) {
    for (const Expression* child : made.children) {
      if (child != nullptr) made.depth = std::max(made.depth, child->depth + 1);
    }
    for (const auto& keyword : made.keywords) {
      made.depth = std::max(made.depth, keyword.value->depth + 1);
    }
    if (made.depth > kMaxDepth) {
      throw source_.error(made.offset, 1, "this expression is nested too deeply",
                          "split it into several statements");
    }
    made.end = previous_end();
    return &made;
  }

  // One expression, or several with commas between them: a tuple.
  const Expression* expression_list() {
    const std::size_t begin = token().offset;
    const Expression* first = starred_expression();
    if (!at(",")) return first;
    Expression& tuple = make(Kind::tuple, begin);
    Children items(*this, children_);
    items.add(first);
    while (accept(",")) {
      if (ends_expression_list()) break;
      items.add(starred_expression());
    }
    tuple.children = items.keep();
    return finish(tuple);
  }
  bool ends_expression_list() const {
    return at(TokenKind::newline) || at(TokenKind::end) || at("=") || at(";") || at(")") ||
           at("]") || at("}") || at(":");
  }

  const Expression* starred_expression() {
    if (!at("*")) return expression();
    Expression& starred = make(Kind::starred, token().offset);
    ++next_;
    starred.children = children({expression()});
    return finish(starred);
  }

  const Expression* expression() {
    if (++nesting_ > kMaxDepth) {
      throw source_.error(token().offset, 1, "this expression is nested too deeply");
    }
    const Expression* result = conditional();
    --nesting_;
    return result;
  }

  const Expression* conditional() {
    if (at("lambda")) return skip_opaque("a lambda");
    const std::size_t begin = token().offset;
    const Expression* value = boolean_operation();
    if (at("if")) {
      ++next_;
      boolean_operation();
      expect("else");
      expression();
      return opaque(begin, "a conditional expression");
    }
    if (at(":=")) {
      ++next_;
      expression();
      return opaque(begin, "an assignment expression");
    }
    return value;
  }

  const Expression* opaque(std::size_t begin, std::string_view what) {
    Expression& made = make(Kind::opaque, begin);
    made.text = what;
    return finish(made);
  }

  // A lambda: its tokens up to where an expression ends.
  const Expression* skip_opaque(std::string_view what) {
    const std::size_t begin = token().offset;
    int depth = 0;
    while (!at(TokenKind::newline) && !at(TokenKind::end)) {
      if (at("(") || at("[") || at("{")) ++depth;
      if (at(")") || at("]") || at("}")) {
        if (depth == 0) break;
        --depth;
      }
      if (depth == 0 && (at(",") || at(";") || at("="))) break;
      ++next_;
    }
    return opaque(begin, what);
  }

  const Expression* boolean_operation() {
    const std::size_t begin = token().offset;
    const Expression* left = comparison();
    if (!at("and") && !at("or")) return left;
    while (accept("and") || accept("or")) comparison();
    return opaque(begin, "a boolean operation");
  }

  const Expression* comparison() {
    const std::size_t begin = token().offset;
    if (accept("not")) {
      if (++nesting_ > kMaxDepth) fail("expected a shallower expression");
      comparison();
      --nesting_;
      return opaque(begin, "a boolean operation");
    }
    const Expression* left = binary(1);
    std::string_view op = comparison_operator();
    if (op.empty()) return left;
    Expression& compare = make(Kind::compare, begin);
    compare.text = op;
    compare.children = children({left, binary(1)});
    const Expression* result = finish(compare);
    if (comparison_operator().empty()) return result;
    do binary(1);
    while (!comparison_operator().empty());
    return opaque(begin, "a chained comparison");
  }

  std::string_view comparison_operator() {
    if (!at(TokenKind::punctuation) && !at(TokenKind::name)) return {};
    static constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<",
                                                                   ">",  "<=", ">="};
    if (at(TokenKind::punctuation) &&
        std::ranges::find(kOperators, token().text) != kOperators.end()) {
      return tokens_[next_++].text;
    }
    if (accept("in")) return "in";
    if (at("not") && token(1).is("in")) {
      next_ += 2;
      return "not in";
    }
    if (accept("is")) return accept("not") ? "is not" : "is";
    return {};
  }

  const Expression* binary(int precedence) {
    const std::size_t begin = token().offset;
    const Expression* left = unary();
    for (int found = binary_precedence(token()); found >= precedence;
         found = binary_precedence(token())) {
      const std::string_view op = tokens_[next_++].text;
      Expression& made = make(Kind::binary, begin);
      made.text = op;
      made.children = children({left, binary(found + 1)});
      left = finish(made);
    }
    return left;
  }

  const Expression* unary() {
    if (at("-") || at("+") || at("~")) {
      if (++nesting_ > kMaxDepth) fail("expected a shallower expression");
      Expression& made = make(Kind::unary, token().offset);
      made.text = tokens_[next_++].text;
      made.children = children({unary()});
      --nesting_;
      return finish(made);
    }
    return power();
  }

  const Expression* power() {
    const std::size_t begin = token().offset;
    if (accept("await")) {
      primary();
      return opaque(begin, "an await");
    }
    const Expression* base = primary();
    if (!accept("**")) return base;
    Expression& made = make(Kind::binary, begin);
    made.text = "**";
    if (++nesting_ > kMaxDepth) fail("expected a shallower expression");
    made.children = children({base, unary()});
    --nesting_;
    return finish(made);
  }

  const Expression* primary() {
    const std::size_t begin = token().offset;
    const Expression* base = atom();
    while (true) {
      if (accept(".")) {
        Expression& made = make(Kind::attribute, begin);
        made.children = children({base});
        made.text = expect_name("an attribute's name after '.'");
        base = finish(made);
      } else if (at("(") && !(printed_members_ > 0 && at_printed_member())) {
        base = call(base, begin);
      } else if (accept("[")) {
        Expression& made = make(Kind::subscript, begin);
        made.children = children({base, subscript_index()});
        expect("]");
        base = finish(made);
      } else {
        return base;
      }
    }
  }

  const Expression* call(const Expression* callee, std::size_t begin) {
    Expression& made = make(Kind::call, begin);
    Children arguments(*this, children_);
    Keywords keywords(*this, keywords_);
    arguments.add(callee);
    expect("(");
    while (!at(")")) {
      if (accept("**")) {
        keywords.add({{}, expression()});
      } else if (at(TokenKind::name) && token(1).is("=")) {
        const std::string_view name = expect_name("an argument's name");
        ++next_;
        keywords.add({name, expression()});
      } else if (at_printed_member()) {
        printed_member(keywords);
        continue;
      } else {
        const Expression* argument = starred_expression();
        if (at("for") || at("async")) argument = comprehension(argument->offset);
        arguments.add(argument);
      }
      if (!accept(",") && !at(")") && !at_printed_member()) {
        fail("expected ',' or ')' in the call");
      }
    }
    expect(")");
    made.children = arguments.keep();
    made.keywords = keywords.keep();
    return finish(made);
  }

  // A module as repr() prints it: `Sequential((0): Linear(...) (1): ReLU())`, and equal members
  // together, `(0-3): 4 x Linear(...)`. Stock PyTorch writes that where a constructor should stand.
  bool at_printed_member() const {
    if (!at("(")) return false;
    const bool is_range = token(2).is("-") && token(3).kind == TokenKind::number;
    const std::size_t close = is_range ? 4 : 2;
    return (token(1).kind == TokenKind::name || token(1).kind == TokenKind::number) &&
           token(close).is(")") && token(close + 1).is(":");
  }

  void printed_member(Keywords& keywords) {
    ++next_;
    const Token first = tokens_[next_++];
    const Token last = accept("-") ? tokens_[next_++] : first;
    expect(")");
    expect(":");
    if (at(TokenKind::number) && token(1).is("x")) next_ += 2;
    // A member ends where the next one begins: there are no commas.
    ++printed_members_;
    const Expression* member = expression();
    --printed_members_;
    accept(",");
    if (last.text == first.text) {
      keywords.add({first.text, member});
      return;
    }
    const auto number = [](std::string_view text) {
      std::uint32_t value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return value;
    };
    const std::uint32_t end = std::min(number(last.text), number(first.text) + kMaxPrintedMembers);
    for (std::uint32_t i = number(first.text); i <= end; ++i) {
      const std::string name = std::to_string(i);
      const auto kept = keep(std::span<const char>(name));
      keywords.add({std::string_view(kept.data(), kept.size()), member});
    }
  }

  // `primals_4: f32[]`, as PyTorch 2.0 logs a scalar, is no Python outside of an annotation.
  const Expression* annotation() {
    is_annotation_ = true;
    const Expression* read = expression();
    is_annotation_ = false;
    return read;
  }

  const Expression* subscript_index() {
    const std::size_t begin = token().offset;
    if (is_annotation_ && at("]")) return finish(make(Kind::tuple, begin));
    const Expression* first = slice_or_expression();
    if (!at(",")) return first;
    Expression& tuple = make(Kind::tuple, begin);
    Children items(*this, children_);
    items.add(first);
    while (accept(",")) {
      if (at("]")) break;
      items.add(slice_or_expression());
    }
    tuple.children = items.keep();
    return finish(tuple);
  }

  const Expression* slice_or_expression() {
    const std::size_t begin = token().offset;
    const Expression* lower = at(":") ? nullptr : starred_expression();
    if (!at(":")) return lower;
    Expression& slice = make(Kind::slice, begin);
    std::array<const Expression*, 3> parts = {lower, nullptr, nullptr};
    for (std::size_t part = 1; part <= 2 && accept(":"); ++part) {
      if (!at(":") && !at(",") && !at("]")) parts[part] = expression();
    }
    slice.children = children({parts[0], parts[1], parts[2]});
    return finish(slice);
  }

  // After the first element of a bracket, at `for`: skips to the closing bracket.
  const Expression* comprehension(std::size_t begin) {
    int depth = 0;
    while (!at(TokenKind::end)) {
      if (at("(") || at("[") || at("{")) ++depth;
      if (at(")") || at("]") || at("}")) {
        if (depth == 0) break;
        --depth;
      }
      ++next_;
    }
    return opaque(begin, "a comprehension");
  }

  const Expression* atom() {
    const std::size_t begin = token().offset;
    if (at(TokenKind::number)) return number();
    if (at(TokenKind::string)) return string();
    if (accept("(")) return sequence(Kind::tuple, ")", begin);
    if (accept("[")) return sequence(Kind::list, "]", begin);
    if (accept("{")) return dict_or_set(begin);
    if (accept("...")) return finish(make(Kind::ellipsis, begin));
    if (accept("None")) return finish(make(Kind::none, begin));
    if (at("True") || at("False")) {
      Expression& made = make(Kind::boolean, begin);
      made.magnitude = at("True") ? 1 : 0;
      ++next_;
      return finish(made);
    }
    if (at("<")) return missing_object(begin);
    if (at("yield")) fail("expected an expression");
    Expression& made = make(Kind::name, begin);
    made.text = expect_name("an expression");
    return finish(made);
  }

  // Stock PyTorch writes `<lambda>()` where it cannot print a subgraph, and `<function f at 0x7f>`
  // for an object that has no text.
  const Expression* missing_object(std::size_t begin) {
    ++next_;
    if (!at("lambda") && !at(TokenKind::name)) fail("expected an expression");
    int depth = 1;
    while (depth > 0 && !at(TokenKind::newline) && !at(TokenKind::end)) {
      if (at("<")) ++depth;
      if (at(">")) --depth;
      ++next_;
    }
    if (depth > 0) fail("expected '>'");
    // `()`, or the names of the subgraphs inside: `( (true_graph_0): <lambda>() )`.
    if (at("(")) {
      int open = 0;
      do {
        if (at(TokenKind::end)) fail("expected ')'");
        if (at("(")) ++open;
        if (at(")")) --open;
        ++next_;
      } while (open > 0);
    }
    Expression& made = make(Kind::missing, begin);
    made.text = std::string_view(source_.text).substr(begin, previous_end() - begin);
    return finish(made);
  }

  const Expression* sequence(Kind kind, std::string_view closing, std::size_t begin) {
    Expression& made = make(kind, begin);
    Children items(*this, children_);
    bool has_comma = false;
    while (!at(closing)) {
      const Expression* item = starred_expression();
      if (at("for") || at("async")) item = comprehension(item->offset);
      items.add(item);
      if (!accept(",")) {
        if (!at(closing)) fail("expected ',' or '" + std::string(closing) + "'");
        break;
      }
      has_comma = true;
    }
    expect(closing);
    if (kind == Kind::tuple && items.size() == 1 && !has_comma) return items.front();
    made.children = items.keep();
    return finish(made);
  }

  const Expression* dict_or_set(std::size_t begin) {
    Expression& made = make(Kind::dict, begin);
    Children items(*this, children_);
    bool is_dict = true;
    while (!at("}")) {
      if (accept("**")) {
        expression();
        is_dict = false;
      } else {
        items.add(starred_expression());
        if (accept(":")) {
          items.add(expression());
        } else {
          is_dict = false;
        }
        if (at("for") || at("async")) {
          comprehension(begin);
          is_dict = false;
        }
      }
      if (!accept(",")) break;
    }
    expect("}");
    if (!is_dict) return opaque(begin, "a set or comprehension");
    made.children = items.keep();
    return finish(made);
  }

  const Expression* number() {
    const Token& literal = token();
    std::string digits(literal.text);
    std::erase(digits, '_');
    ++next_;
    const auto bad = [&]() -> UserError {
      return source_.error(literal.offset, literal.text.size(), "not a number Assay can represent",
                           "expected an integer of at most 64 bits or a floating point number");
    };
    int base = 10;
    const char* begin = digits.data();
    const char* end = begin + digits.size();
    if (digits.size() > 2 && digits[0] == '0') {
      const char marker = static_cast<char>(digits[1] | 0x20);
      base = marker == 'x' ? 16 : marker == 'o' ? 8 : marker == 'b' ? 2 : 10;
      if (base != 10) begin += 2;
    }
    std::uint64_t magnitude = 0;
    auto [integer_end, integer_error] = std::from_chars(begin, end, magnitude, base);
    if (integer_error == std::errc() && integer_end == end) {
      Expression& made = make(Kind::integer, literal.offset);
      made.magnitude = magnitude;
      return finish(made);
    }
    if (base != 10) throw bad();
    const bool is_imaginary = end[-1] == 'j' || end[-1] == 'J';
    if (is_imaginary) --end;
    double value = 0;
    auto [float_end, float_error] = std::from_chars(begin, end, value);
    const bool is_integer_text =
        std::all_of(begin, end, [](char c) { return c >= '0' && c <= '9'; });
    if (float_end != end || (is_integer_text && !is_imaginary) ||
        float_error == std::errc::invalid_argument) {
      throw bad();
    }
    if (float_error == std::errc::result_out_of_range) throw bad();
    Expression& made = make(is_imaginary ? Kind::imaginary : Kind::floating, literal.offset);
    made.number = value;
    return finish(made);
  }

  const Expression* string() {
    const std::size_t begin = token().offset;
    Expression& made = make(Kind::string, begin);
    bool is_plain = true;
    std::string value;
    for (; at(TokenKind::string); ++next_) {
      const Token& part = token();
      if (part.is_formatted || part.is_bytes) is_plain = false;
      if (part.is_raw) {
        value += part.text;
      } else if (auto decoded = unescape(part.text)) {
        value += *decoded;
      } else {
        throw source_.error(begin, part.text.size() + 1, "bad escape sequence in this string");
      }
    }
    if (!is_plain) return opaque(begin, "a formatted or bytes string");
    const auto kept = keep(std::span<const char>(value));
    made.value = std::string_view(kept.data(), kept.size());
    return finish(made);
  }

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
