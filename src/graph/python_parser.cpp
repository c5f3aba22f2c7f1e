#include "graph/python_parser.h"

#include <algorithm>
#include <array>

#include "graph/python_expression_parser.h"

namespace assay::graph::python {

namespace {

class StatementParser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  void file() {
    while (!at(TokenKind::end)) statement(module_.statements);
  }

 private:
  void statement(std::vector<Statement>& into) {
    if (at("@")) {
      skip_line();
      return;
    }
    if (at("class")) return class_definition(into);
    if (at("def")) return function_definition(into);
    if (at("with")) return headed_block(into, Statement::Kind::with_block);
    if (at("if")) return headed_block(into, Statement::Kind::if_block);
    if (opens_other_block()) return other_block(into);
    simple_statements(into);
  }

  bool opens_other_block() const {
    static constexpr std::array<std::string_view, 8> kKeywords = {
        "for", "while", "try", "except", "finally", "else", "elif", "async"};
    return at(TokenKind::name) && std::ranges::find(kKeywords, token().text) != kKeywords.end();
  }

  void skip_line() {
    while (!at(TokenKind::newline) && !at(TokenKind::end)) ++next_;
    if (at(TokenKind::newline)) ++next_;
  }

  Statement& add(std::vector<Statement>& into, Statement::Kind kind) {
    Statement& made = into.emplace_back();
    made.kind = kind;
    made.offset = token().offset;
    return made;
  }

  void block(std::vector<Statement>& body, bool may_be_empty = false) {
    expect(":");
    if (!at(TokenKind::newline)) {
      simple_statements(body);
      return;
    }
    ++next_;
    if (!at(TokenKind::indent)) {
      if (may_be_empty) return;
      fail("expected an indented block");
    }
    ++next_;
    while (!at(TokenKind::dedent) && !at(TokenKind::end)) statement(body);
    if (at(TokenKind::dedent)) ++next_;
  }

  void class_definition(std::vector<Statement>& into) {
    Statement made;
    made.kind = Statement::Kind::class_def;
    made.offset = token().offset;
    ++next_;
    if (accept("<")) {  // `class <lambda>(torch.nn.Module):`, as stock's readable form has it
      made.name = token().text;
      ++next_;
      expect(">");
    } else {
      made.name = expect_name("a class name");
    }
    if (at("(")) {
      Expression& nobody = make(Kind::none, token().offset);
      made.value = call(&nobody, token().offset);
    }
    block(made.body);
    made.end = previous_end();
    into.push_back(std::move(made));
  }

  void function_definition(std::vector<Statement>& into) {
    Statement made;
    made.kind = Statement::Kind::function;
    made.offset = token().offset;
    ++next_;
    made.name = expect_name("a function name");
    expect("(");
    while (!at(")")) {
      if (accept("*") || accept("**")) {
        if (at(",")) {
          ++next_;
          continue;
        }
      } else if (accept("/")) {
        accept(",");
        continue;
      }
      Statement::Parameter parameter;
      parameter.offset = token().offset;
      parameter.name = expect_name("a parameter's name");
      if (accept(":")) parameter.annotation = annotation();
      if (accept("=")) parameter.default_value = expression();
      made.parameters.push_back(parameter);
      if (!accept(",") && !at(")")) fail("expected ',' or ')' after the parameter");
    }
    expect(")");
    if (accept("->")) expression();
    // For a graph without inputs, stock PyTorch writes a load_args without a body.
    block(made.body, made.name == "load_args");
    made.end = previous_end();
    into.push_back(std::move(made));
  }

  void headed_block(std::vector<Statement>& into, Statement::Kind kind) {
    Statement made;
    made.kind = kind;
    made.offset = token().offset;
    ++next_;
    made.value = expression();
    while (!at(":") && !at(TokenKind::newline) && !at(TokenKind::end)) ++next_;
    block(made.body);
    made.end = previous_end();
    into.push_back(std::move(made));
  }

  void other_block(std::vector<Statement>& into) {
    Statement made;
    made.kind = Statement::Kind::other;
    made.offset = token().offset;
    int depth = 0;
    while (!(depth == 0 && at(":"))) {
      if (at(TokenKind::newline) || at(TokenKind::end)) fail("expected ':'");
      if (at("(") || at("[") || at("{")) ++depth;
      if (at(")") || at("]") || at("}")) --depth;
      ++next_;
    }
    block(made.body);
    made.end = previous_end();
    into.push_back(std::move(made));
  }

  void simple_statements(std::vector<Statement>& into) {
    while (true) {
      simple_statement(into);
      if (accept(";")) {
        if (at(TokenKind::newline)) break;
        continue;
      }
      break;
    }
    if (at(TokenKind::end)) return;
    if (!at(TokenKind::newline)) fail("expected the end of the statement");
    ++next_;
  }

  void simple_statement(std::vector<Statement>& into) {
    static constexpr std::array<std::string_view, 8> kOthers = {
        "del", "global", "nonlocal", "raise", "assert", "break", "continue", "yield"};
    if (at("import") || at("from")) {
      Statement& made = add(into, Statement::Kind::import);
      skip_to_statement_end();
      made.end = previous_end();
    } else if (at(TokenKind::name) && std::ranges::find(kOthers, token().text) != kOthers.end()) {
      Statement& made = add(into, Statement::Kind::other);
      skip_to_statement_end();
      made.end = previous_end();
    } else if (at("pass")) {
      Statement& made = add(into, Statement::Kind::pass);
      ++next_;
      made.end = previous_end();
    } else if (at("return")) {
      Statement& made = add(into, Statement::Kind::returns);
      ++next_;
      if (!at(TokenKind::newline) && !at(";") && !at(TokenKind::end)) {
        made.value = expression_list();
      }
      made.end = previous_end();
    } else {
      assignment_or_expression(into);
    }
  }

  void skip_to_statement_end() {
    while (!at(TokenKind::newline) && !at(";") && !at(TokenKind::end)) ++next_;
  }

  void assignment_or_expression(std::vector<Statement>& into) {
    Statement& made = add(into, Statement::Kind::expression);
    const Expression* first = expression_list();
    if (accept(":")) {
      made.targets.push_back(first);
      made.annotation = annotation();
      made.kind = at("=") ? Statement::Kind::assign : Statement::Kind::declaration;
      if (accept("=")) made.value = expression_list();
    } else if (at("=")) {
      made.kind = Statement::Kind::assign;
      made.targets.push_back(first);
      while (accept("=")) {
        if (made.value != nullptr) made.targets.push_back(made.value);
        made.value = expression_list();
      }
    } else if (at(TokenKind::punctuation) && token().text.size() >= 2 &&
               token().text.back() == '=' && comparison_free(token().text)) {
      made.kind = Statement::Kind::augmented;
      made.operation = tokens_[next_++].text;
      made.targets.push_back(first);
      made.value = expression_list();
    } else {
      made.value = first;
    }
    made.end = previous_end();
  }

  static bool comparison_free(std::string_view op) {
    return op != "==" && op != "!=" && op != "<=" && op != ">=" && op != ":=";
  }
};

}  // namespace

Module parse_module(const Source& source) {
  Module module;
  StatementParser(source, module).file();
  return module;
}

const Expression* parse_expression(const Source& source, Module& module) {
  return ExpressionParser(source, module).lone_expression();
}

std::string dotted_name(const Expression& expression) {
  std::size_t length = expression.text.size();
  const Expression* root = &expression;
  for (; root->kind == Expression::Kind::attribute; root = root->children[0]) {
    length += 1 + root->children[0]->text.size();
  }
  if (root->kind != Expression::Kind::name) return {};
  // Where the parts stand in the source with nothing but dots between them, which is nearly always,
  // the name is there already.
  const char* begin = root->text.data();
  const char* end = expression.text.data() + expression.text.size();
  if (end - begin == static_cast<std::ptrdiff_t>(length)) return std::string(begin, end);
  std::string name(expression.text);
  for (const Expression* part = &expression; part != root; part = part->children[0]) {
    name.insert(0, std::string(part->children[0]->text) + ".");
  }
  return name;
}

}  // namespace assay::graph::python
