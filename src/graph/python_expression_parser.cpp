#include "graph/python_expression_parser.h"

#include <array>
#include <charconv>

#include "assay/error.h"
#include "graph/python_names.h"

namespace assay::graph::python {

namespace {

// Of the members that `(0-3): 4 x Linear(...)` stands for.
constexpr std::uint32_t kMaxPrintedMembers = 1000;

int binary_precedence(const Token& token) {
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

}  // namespace

const Expression* ExpressionParser::lone_expression() {
  const Expression* result = expression_list();
  while (at(TokenKind::newline)) ++next_;
  if (!at(TokenKind::end)) fail("expected the end of the expression");
  return result;
}

std::size_t ExpressionParser::previous_end() const {
  const Token& previous = tokens_[next_ - 1];
  // A string's text lies between its quotes; the next token's start is a good enough end.
  return previous.kind == TokenKind::string ? token().offset
                                            : previous.offset + previous.text.size();
}

void ExpressionParser::fail(const std::string& message, const std::string& hint) const {
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

void ExpressionParser::expect(std::string_view text) {
  if (!accept(text)) fail("expected '" + std::string(text) + "'");
}

std::string_view ExpressionParser::expect_name(const char* what) {
  if (!at(TokenKind::name) || !is_python_identifier(token().text)) {
    fail(std::string("expected ") + what);
  }
  return tokens_[next_++].text;
}

Expression& ExpressionParser::make(Kind kind, std::size_t offset) {
  Expression* made =
      std::pmr::polymorphic_allocator<Expression>(module_.arena.get()).new_object<Expression>();
  made->kind = kind;
  made->offset = offset;
  return *made;
}

std::span<const Expression* const> ExpressionParser::children(
    std::initializer_list<const Expression*> expressions) {
  return keep(std::span<const Expression* const>(expressions.begin(), expressions.size()));
}

const Expression* ExpressionParser::finish(Expression& made) {
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

const Expression* ExpressionParser::expression_list() {
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

bool ExpressionParser::ends_expression_list() const {
  return at(TokenKind::newline) || at(TokenKind::end) || at("=") || at(";") || at(")") || at("]") ||
         at("}") || at(":");
}

const Expression* ExpressionParser::starred_expression() {
  if (!at("*")) return expression();
  Expression& starred = make(Kind::starred, token().offset);
  ++next_;
  starred.children = children({expression()});
  return finish(starred);
}

const Expression* ExpressionParser::expression() {
  if (++nesting_ > kMaxDepth) {
    throw source_.error(token().offset, 1, "this expression is nested too deeply");
  }
  const Expression* result = conditional();
  --nesting_;
  return result;
}

const Expression* ExpressionParser::conditional() {
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

const Expression* ExpressionParser::opaque(std::size_t begin, std::string_view what) {
  Expression& made = make(Kind::opaque, begin);
  made.text = what;
  return finish(made);
}

const Expression* ExpressionParser::skip_opaque(std::string_view what) {
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

const Expression* ExpressionParser::boolean_operation() {
  const std::size_t begin = token().offset;
  const Expression* left = comparison();
  if (!at("and") && !at("or")) return left;
  while (accept("and") || accept("or")) comparison();
  return opaque(begin, "a boolean operation");
}

const Expression* ExpressionParser::comparison() {
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

std::string_view ExpressionParser::comparison_operator() {
  if (!at(TokenKind::punctuation) && !at(TokenKind::name)) return {};
  static constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<", ">", "<=", ">="};
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

const Expression* ExpressionParser::binary(int precedence) {
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

const Expression* ExpressionParser::unary() {
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

const Expression* ExpressionParser::power() {
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

const Expression* ExpressionParser::primary() {
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

const Expression* ExpressionParser::call(const Expression* callee, std::size_t begin) {
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

bool ExpressionParser::at_printed_member() const {
  if (!at("(")) return false;
  const bool is_range = token(2).is("-") && token(3).kind == TokenKind::number;
  const std::size_t close = is_range ? 4 : 2;
  return (token(1).kind == TokenKind::name || token(1).kind == TokenKind::number) &&
         token(close).is(")") && token(close + 1).is(":");
}

void ExpressionParser::printed_member(Keywords& keywords) {
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

const Expression* ExpressionParser::annotation() {
  is_annotation_ = true;
  const Expression* read = expression();
  is_annotation_ = false;
  return read;
}

const Expression* ExpressionParser::subscript_index() {
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

const Expression* ExpressionParser::slice_or_expression() {
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

}  // namespace assay::graph::python
