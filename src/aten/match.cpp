#include "aten/match.h"

#include <algorithm>
#include <sstream>

#include "assay/error.h"
#include "aten/convert.h"

namespace assay::aten {

namespace {

std::size_t count_positional(const c10::FunctionSchema& schema) {
  return static_cast<std::size_t>(std::ranges::count_if(
      schema.arguments(), [](const auto& argument) { return !argument.kwarg_only(); }));
}

bool is_size_list(const c10::Argument& argument) {
  const c10::Type& type = *argument.real_type();
  if (type.kind() != c10::TypeKind::ListType) return false;
  const auto element = type.expectRef<c10::ListType>().getElementType()->kind();
  return element == c10::TypeKind::IntType || element == c10::TypeKind::SymIntType;
}

// `x.view(2, 3)`: where a list of sizes is all a function takes, Python lets one spread it.
bool may_spread(const c10::FunctionSchema& schema, const CallShape& shape, Dialect dialect) {
  if (dialect == Dialect::operator_call) return false;
  const std::size_t list_at = dialect == Dialect::method ? 1 : 0;
  const bool are_integers =
      dialect == Dialect::method ? shape.integers_from_second : shape.integers_from_first;
  return are_integers && shape.positional > list_at && count_positional(schema) == list_at + 1 &&
         is_size_list(schema.arguments()[list_at]);
}

// torch.* functions call the tensor `input` where the schema says `self`, and take NumPy's names.
bool is_named(const c10::Argument& argument, std::string_view keyword, Dialect dialect) {
  const std::string& name = argument.name();
  if (name == keyword || (keyword == "input" && name == "self")) return true;
  if (dialect == Dialect::operator_call) return false;
  return (keyword == "axis" && name == "dim") || (keyword == "keepdims" && name == "keepdim") ||
         (keyword == "x2" && name == "other") ||
         ((keyword == "x" || keyword == "a" || keyword == "x1") && name == "self");
}

// In Python `out=None` is the same as no `out`.
Arguments without_empty_out(const Arguments& arguments) {
  Arguments kept = arguments;
  std::erase_if(kept.keywords, [](const Keyword& keyword) {
    return keyword.name == "out" && keyword.value.is_none();
  });
  return kept;
}

CallShape shape_of(const Arguments& arguments) {
  CallShape shape;
  shape.positional = arguments.positional.size();
  for (const Keyword& keyword : arguments.keywords) shape.keywords.push_back(keyword.name);
  const auto all_integers = [&](std::size_t from) {
    const auto& given = arguments.positional;
    const auto begin = given.begin() + static_cast<std::ptrdiff_t>(std::min(from, given.size()));
    return std::all_of(begin, given.end(), [](const Value& value) { return value.is_int(); });
  };
  shape.integers_from_first = all_integers(0);
  shape.integers_from_second = all_integers(1);
  return shape;
}

Value spread_list(const Arguments& arguments, std::size_t from) {
  const auto begin = arguments.positional.begin() + static_cast<std::ptrdiff_t>(from);
  return Value::sequence(Value::Kind::list, std::vector<Value>(begin, arguments.positional.end()));
}

}  // namespace

std::optional<std::vector<Binding>> bind_schema(const c10::FunctionSchema& schema,
                                                const CallShape& shape, Dialect dialect,
                                                std::string& why) {
  const auto& wanted = schema.arguments();
  const bool spread = may_spread(schema, shape, dialect);
  const std::size_t list_at = dialect == Dialect::method ? 1 : 0;
  const std::size_t given = spread ? list_at + 1 : shape.positional;
  const std::size_t most = count_positional(schema);
  if (given > most) {
    why = "takes " + std::to_string(most) + " positional arguments, " + std::to_string(given) +
          " given";
    return std::nullopt;
  }
  std::vector<Binding> bindings;
  bindings.reserve(wanted.size());
  std::size_t used_keywords = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto keyword = std::ranges::find_if(
        shape.keywords, [&](std::string_view name) { return is_named(wanted[i], name, dialect); });
    if (keyword != shape.keywords.end()) {
      if (i < given) {
        why = "argument '" + wanted[i].name() + "' given twice";
        return std::nullopt;
      }
      ++used_keywords;
      bindings.push_back(
          {Binding::Source::keyword, static_cast<std::size_t>(keyword - shape.keywords.begin())});
    } else if (i < given) {
      const bool is_spread = spread && i == list_at;
      bindings.push_back({is_spread ? Binding::Source::spread : Binding::Source::positional, i});
    } else if (wanted[i].default_value()) {
      bindings.push_back({Binding::Source::default_value, i});
    } else {
      why = "argument '" + wanted[i].name() + "' is missing";
      return std::nullopt;
    }
  }
  if (used_keywords == shape.keywords.size()) return bindings;
  for (std::string_view name : shape.keywords) {
    const bool is_known = std::ranges::any_of(
        wanted, [&](const auto& argument) { return is_named(argument, name, dialect); });
    if (!is_known) why = "has no argument '" + std::string(name) + "'";
  }
  return std::nullopt;
}

std::optional<Match> match(const c10::OperatorHandle& op, const Arguments& arguments,
                           Dialect dialect, std::string& why) {
  const c10::FunctionSchema& schema = op.schema();
  const auto bindings = bind_schema(schema, shape_of(arguments), dialect, why);
  if (!bindings) return std::nullopt;
  Match result{op, {}, *bindings, 0};
  result.stack.reserve(bindings->size());
  for (std::size_t i = 0; i < bindings->size(); ++i) {
    const Binding& binding = (*bindings)[i];
    const c10::Argument& wanted = schema.arguments()[i];
    if (binding.source == Binding::Source::default_value) {
      result.stack.push_back(*wanted.default_value());
      continue;
    }
    const bool is_spread = binding.source == Binding::Source::spread;
    const Value gathered = is_spread ? spread_list(arguments, binding.index) : Value();
    const Value& value = is_spread ? gathered
                         : binding.source == Binding::Source::keyword
                             ? arguments.keywords[binding.index].value
                             : arguments.positional[binding.index];
    // A list that was written as one must win over numbers that may be one.
    if (is_spread) ++result.cost;
    auto converted = convert(value, schema, i, result.cost);
    if (!converted) {
      why = "argument '" + wanted.name() + "' should be " + wanted.real_type()->annotation_str() +
            ", found " + type_name(value);
      return std::nullopt;
    }
    result.stack.push_back(std::move(*converted));
  }
  return result;
}

Match match_overload(std::span<const c10::OperatorHandle> candidates, const Arguments& arguments,
                     Dialect dialect, const std::string& call) {
  const bool has_empty_out = std::ranges::any_of(arguments.keywords, [](const Keyword& keyword) {
    return keyword.name == "out" && keyword.value.is_none();
  });
  if (has_empty_out && dialect != Dialect::operator_call) {
    return match_overload(candidates, without_empty_out(arguments), dialect, call);
  }
  std::optional<Match> best;
  std::string reasons;
  for (const c10::OperatorHandle& candidate : candidates) {
    std::string why;
    auto found = match(candidate, arguments, dialect, why);
    if (found && (!best || found->cost < best->cost)) best = std::move(found);
    if (!best) reasons += "\n    " + schema_text(candidate) + "\n      " + why;
  }
  if (!best) {
    throw UserError("the arguments of '" + call + "' match no schema of the operator:" + reasons);
  }
  return std::move(*best);
}

std::string schema_text(const c10::OperatorHandle& op) {
  std::ostringstream out;
  out << op.schema();
  return out.str();
}

}  // namespace assay::aten
