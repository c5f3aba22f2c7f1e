#include "aten/functions/reduction.h"

#include "aten/functions/operand.h"

namespace assay::aten {

std::string reduction_word(const BoundArguments& arguments) {
  const Value& size_average = arguments["size_average"];
  const Value& reduce = arguments["reduce"];
  if (size_average.is_none() && reduce.is_none()) return arguments.text("reduction");
  if (!reduce.is_none() && !truth_of(reduce)) return "none";
  return size_average.is_none() || truth_of(size_average) ? "mean" : "sum";
}

std::int64_t reduction_number(const std::string& word) {
  if (word == "none") return 0;
  if (word == "mean" || word == "elementwise_mean") return 1;
  if (word == "sum") return 2;
  throw UserError(word + " is not a valid value for reduction");
}

std::int64_t reduction(const BoundArguments& arguments) {
  return reduction_number(reduction_word(arguments));
}

Value reduce_loss(const at::Tensor& loss, const std::string& word) {
  if (word == "none") return Operand(loss).value;
  if (word == "mean") return Operand(loss.mean()).value;
  if (word == "sum") return Operand(loss.sum()).value;
  throw UserError(word + " is not a valid value for reduction");
}

}  // namespace assay::aten
