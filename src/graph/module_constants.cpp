#include "graph/module_constants.h"

#include <cmath>

#include "graph/constant_syntax.h"

namespace assay::graph {

namespace {

using python::Expression;
using python::Source;
using python::Statement;
using Kind = Expression::Kind;

struct NotConstant {};

// A number, kept as an integer as long as it is one.
struct Number {
  std::optional<std::int64_t> integer;
  double floating = 0;
};

std::optional<Number> number_of(const Argument& value) {
  if (const auto* found = value.get_if<std::int64_t>()) {
    return Number{*found, static_cast<double>(*found)};
  }
  if (const auto* found = value.get_if<bool>()) return Number{*found ? 1 : 0, *found ? 1.0 : 0.0};
  if (const auto* found = value.get_if<double>()) return Number{std::nullopt, *found};
  return std::nullopt;
}

std::optional<Argument> arithmetic(std::string_view op, const Argument& left,
                                   const Argument& right) {
  const auto a = number_of(left);
  const auto b = number_of(right);
  if (!a || !b) return std::nullopt;
  if (op == "/") {
    if (b->floating == 0) return std::nullopt;
    return a->floating / b->floating;
  }
  if (a->integer && b->integer) {
    using Operation = SizeExpr::Operation;
    Operation operation{};
    if (op == "+") {
      operation = Operation::add;
    } else if (op == "-") {
      operation = Operation::subtract;
    } else if (op == "*") {
      operation = Operation::multiply;
    } else if (op == "//") {
      operation = Operation::floor_divide;
    } else if (op == "%") {
      operation = Operation::modulo;
    } else if (op == "**") {
      operation = Operation::power;
    } else {
      return std::nullopt;
    }
    const SizeExpr result = SizeExpr::binary(operation, *a->integer, *b->integer);
    if (const auto value = result.constant()) return *value;
    return std::nullopt;
  }
  if (op == "+") return a->floating + b->floating;
  if (op == "-") return a->floating - b->floating;
  if (op == "*") return a->floating * b->floating;
  if (op == "**") return std::pow(a->floating, b->floating);
  return std::nullopt;
}

std::optional<std::int64_t> integer_text(const std::string& text) {
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoll(text);
}

// int(x), float(x), os.getenv('NAME', x), os.environ.get('NAME', x)
std::optional<Argument> called(const Source& source, const Expression& call,
                               const ModuleConstants& known) {
  const std::string function = python::dotted_name(*call.children[0]);
  const std::size_t count = call.children.size() - 1;
  if ((function == "os.getenv" || function == "os.environ.get") && count == 2) {
    return fold_constant(source, *call.children[2], known);
  }
  if ((function != "int" && function != "float") || count != 1 || !call.keywords.empty()) {
    return std::nullopt;
  }
  auto value = fold_constant(source, *call.children[1], known);
  if (!value) return std::nullopt;
  if (const auto* text = value->get_if<std::string>()) {
    const auto integer = integer_text(*text);
    if (!integer) return std::nullopt;
    value = Argument(*integer);
  }
  const auto number = number_of(*value);
  if (!number) return std::nullopt;
  if (function == "float") return number->floating;
  if (number->integer) return *number->integer;
  if (!(std::abs(number->floating) < 9e18)) return std::nullopt;
  return static_cast<std::int64_t>(number->floating);
}

}  // namespace

std::optional<Argument> fold_constant(const Source& source, const Expression& expression,
                                      const ModuleConstants& known) {
  const SyntaxReader read_item = [&](const Expression& item) -> Argument {
    if (auto folded = fold_constant(source, item, known)) return std::move(*folded);
    throw NotConstant{};
  };
  try {
    switch (expression.kind) {
      case Kind::name:
        if (const auto found = known.find(expression.text); found != known.end()) {
          return found->second;
        }
        break;
      case Kind::binary:
        return arithmetic(expression.text, read_item(*expression.children[0]),
                          read_item(*expression.children[1]));
      case Kind::unary:
        if (auto literal = literal_from_syntax(source, expression, read_item)) return literal;
        if (expression.text != "-") return std::nullopt;
        return arithmetic("*", std::int64_t{-1}, read_item(*expression.children[0]));
      case Kind::call:
        if (auto value = called(source, expression, known)) return value;
        break;
      default:
        break;
    }
    return literal_from_syntax(source, expression, read_item);
  } catch (const NotConstant&) {
    return std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;  // a literal that no graph can hold, in a statement that no graph needs
  }
}

ModuleConstants module_constants(const Source& source, const python::Module& module) {
  ModuleConstants known;
  for (const Statement& statement : module.statements) {
    if (statement.kind != Statement::Kind::assign || statement.targets.size() != 1) continue;
    const auto bind = [&](const Expression& target, const Expression& assigned) {
      if (target.kind != Kind::name) return;
      if (auto value = fold_constant(source, assigned, known)) {
        known.insert_or_assign(std::string(target.text), std::move(*value));
      }
    };
    const Expression& target = *statement.targets[0];
    const Expression& value = *statement.value;
    if (target.kind == Kind::tuple && value.kind == Kind::tuple &&
        target.children.size() == value.children.size()) {  // N, C = 2, 3
      for (std::size_t i = 0; i < target.children.size(); ++i) {
        bind(*target.children[i], *value.children[i]);
      }
    } else {
      bind(target, value);
    }
  }
  return known;
}

}  // namespace assay::graph
