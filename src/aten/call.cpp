#include "aten/call.h"

#include "assay/error.h"
#include "aten/operators.h"

namespace assay::aten {

Value results_to_value(std::vector<c10::IValue> results) {
  if (results.empty()) return Value();
  if (results.size() == 1) return Value(std::move(results[0]));
  std::vector<Value> items;
  items.reserve(results.size());
  for (c10::IValue& result : results) items.emplace_back(std::move(result));
  return Value::sequence(Value::Kind::tuple, std::move(items));
}

Value call(Match match) {
  match.op.callBoxed(match.stack);
  return results_to_value(std::move(match.stack));
}

Value call(const std::string& qualified_name, const Arguments& arguments, Dialect dialect) {
  const auto candidates = overloads(qualified_name);
  if (candidates.empty()) throw unknown_operator("torch.ops." + qualified_name);
  return call(match_overload(candidates, arguments, dialect, qualified_name));
}

}  // namespace assay::aten
