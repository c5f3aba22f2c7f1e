// torch.unique and its kin: what they return depends on what was asked for.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// The operator always returns values, inverse and counts; Python drops what was not asked for.
Value selected(const Value& all, const BoundArguments& arguments) {
  std::vector<Value> results = unpack(all);
  std::vector<Value> kept = {results[0]};
  if (arguments.truth("return_inverse")) kept.push_back(results[1]);
  if (arguments.truth("return_counts")) kept.push_back(results[2]);
  return kept.size() == 1 ? kept.front() : tuple_of(std::move(kept));
}

Value unique(const BoundArguments& arguments) {
  const Value& input = arguments["input"];
  const Value& dim = arguments["dim"];
  const Value& sorted = arguments["sorted"];
  const Value& inverse = arguments["return_inverse"];
  const Value& counts = arguments["return_counts"];
  const Value all = dim.is_none() ? run("aten::_unique2", {input, sorted, inverse, counts})
                                  : run("aten::unique_dim", {input, dim, sorted, inverse, counts});
  return selected(all, arguments);
}

Value unique_consecutive(const BoundArguments& arguments) {
  return selected(run("aten::unique_consecutive", {arguments["input"], arguments["return_inverse"],
                                                   arguments["return_counts"], arguments["dim"]}),
                  arguments);
}

constexpr std::string_view kUnique =
    "input, sorted=True, return_inverse=False, return_counts=False, dim=None";
constexpr std::string_view kConsecutive =
    "input, return_inverse=False, return_counts=False, dim=None";

constexpr std::array kUniqueFunctions = std::to_array<TorchFunction>({
    {"torch.unique", kUnique, unique},
    {"torch.unique_consecutive", kConsecutive, unique_consecutive},
});

constexpr std::array kUniqueMethods = std::to_array<TorchFunction>({
    {"unique", kUnique, unique},
    {"unique_consecutive", kConsecutive, unique_consecutive},
});

}  // namespace

FunctionTable unique_functions() { return kUniqueFunctions; }
FunctionTable unique_methods() { return kUniqueMethods; }

}  // namespace assay::aten
