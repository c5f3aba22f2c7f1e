#include "aten/auto_functionalized.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "assay/error.h"
#include "aten/call.h"
#include "aten/functions/operand.h"
#include "aten/operators.h"

namespace assay::aten {

namespace {

c10::OperatorHandle mutable_operator(const Arguments& arguments) {
  if (arguments.positional.empty() || arguments.positional[0].kind != Value::Kind::name) {
    throw UserError("expected the name of an operator");
  }
  const std::string& name = arguments.positional[0].leaf.toStringRef();
  const auto found = find_operator(graph::Target(name));
  if (!found) throw unknown_operator(name);
  check_is_harmless(*found);
  return *found;
}

bool is_mutated(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// Takes a keyword out of the list; nothing if it is not there.
std::optional<Value> take(std::vector<Keyword>& keywords, const std::string& name) {
  const auto found = std::ranges::find(keywords, name, &Keyword::name);
  if (found == keywords.end()) return std::nullopt;
  Value value = std::move(found->value);
  keywords.erase(found);
  return value;
}

Value take_required(std::vector<Keyword>& keywords, const std::string& name) {
  auto value = take(keywords, name);
  if (!value) throw UserError("the argument '" + name + "' is missing");
  return std::move(*value);
}

Value copy_of(const Value& value) {
  if (value.is_tensor()) return c10::IValue(value.leaf.toTensor().clone());
  if (!holds_sequence(value)) return value;  // None
  std::vector<Value> copies;
  for (const Value& item : unpack(value)) copies.push_back(copy_of(item));
  return list_of(std::move(copies));
}

// The operator's own results; None is one where there is none.
std::vector<Value> call_mutable(const c10::OperatorHandle& op, std::vector<Keyword> keywords) {
  const Value result = call(match_overload(std::array{op}, {{}, std::move(keywords)},
                                           Dialect::operator_call, python_name(op)));
  if (op.schema().returns().size() > 1) return unpack(result);
  return {op.schema().returns().empty() ? Value() : result};
}

// One mutated tensor: a copied base, or a view of it.
Value view_of_base(std::vector<Keyword>& keywords, const std::string& prefix,
                   const std::vector<Value>& bases) {
  const Value index = take_required(keywords, prefix + "_base_index");
  if (index.is_none()) return {};
  if (!index.is_int() || index.leaf.toInt() < 0 ||
      index.leaf.toInt() >= static_cast<std::int64_t>(bases.size())) {
    throw UserError("'" + prefix + "_base_index' is not the index of a base");
  }
  const Value& base = bases[static_cast<std::size_t>(index.leaf.toInt())];
  if (take(keywords, prefix + "_alias")) return run("aten::alias", {base});
  if (auto offset = take(keywords, prefix + "_storage_offset")) {
    const Value size = take_required(keywords, prefix + "_size");
    const Value stride = take_required(keywords, prefix + "_stride");
    return run("aten::as_strided", {base, size, stride, *offset});
  }
  if (auto dim = take(keywords, prefix + "_slice_dim")) {
    const Value start = take_required(keywords, prefix + "_slice_start");
    const Value end = take_required(keywords, prefix + "_slice_end");
    return run("aten::slice", {base, *dim, start, end});
  }
  return base;
}

}  // namespace

Value run_auto_functionalized(const Arguments& arguments, const RunPlan&) {
  const c10::OperatorHandle op = mutable_operator(arguments);
  std::vector<Keyword> keywords = arguments.keywords;
  std::vector<Value> copies;
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (!is_mutated(argument)) continue;
    const auto given = std::ranges::find(keywords, argument.name(), &Keyword::name);
    if (given == keywords.end()) throw UserError("'" + argument.name() + "' is missing");
    given->value = copy_of(given->value);
    copies.push_back(given->value);
  }
  std::vector<Value> results = call_mutable(op, std::move(keywords));
  results.insert(results.end(), copies.begin(), copies.end());
  return tuple_of(std::move(results));
}

Value run_auto_functionalized_v2(const Arguments& arguments, const RunPlan&) {
  const c10::OperatorHandle op = mutable_operator(arguments);
  std::vector<Keyword> keywords = arguments.keywords;
  const auto only = take(keywords, "_only_clone_these_bases");
  std::vector<Value> bases;
  if (auto all = take(keywords, "_all_bases")) bases = unpack(*all);
  for (std::size_t i = 0; i < bases.size(); ++i) {
    bool is_copied = true;
    if (only && !only->is_none()) {
      const std::vector<std::int64_t> copied = integers_of(*only);
      is_copied = std::ranges::find(copied, static_cast<std::int64_t>(i)) != copied.end();
    }
    if (is_copied) bases[i] = copy_of(bases[i]);
  }
  for (const c10::Argument& argument : op.schema().arguments()) {
    if (!is_mutated(argument)) continue;
    const std::string prefix = "_" + argument.name();
    Value value;
    if (argument.type()->kind() == c10::TypeKind::ListType) {
      const Value length = take_required(keywords, prefix + "_length");
      std::vector<Value> items;
      for (std::int64_t i = 0; length.is_int() && i < length.leaf.toInt(); ++i) {
        items.push_back(view_of_base(keywords, prefix + "_" + std::to_string(i), bases));
      }
      if (!length.is_none()) value = list_of(std::move(items));
    } else {
      value = view_of_base(keywords, prefix, bases);
    }
    keywords.push_back({argument.name(), std::move(value)});
  }
  std::vector<Value> results = call_mutable(op, std::move(keywords));
  results.insert(results.end(), bases.begin(), bases.end());
  return tuple_of(std::move(results));
}

}  // namespace assay::aten
