// torch's functions on sizes and other scalars, which are plain numbers when a graph runs, and the
// checks on them.
#include <array>

#include "aten/functions/operand.h"
#include "aten/functions/python_operators.h"
#include "aten/functions/tables.h"

namespace assay::aten {

namespace {

// A float on either side makes the result a float, unlike Python's own max() and min().
Value extreme_number(const BoundArguments& arguments, Comparison beats) {
  const Value& a = arguments["a"];
  const Value& b = arguments["b"];
  const Value& best = compare_numbers(beats, b, a) ? b : a;
  if (a.is_float() || b.is_float()) return c10::IValue(number_to_float(best));
  return best;
}

Value check(const BoundArguments& arguments) {
  if (truth_of(arguments["cond"])) return {};
  const Value& message = arguments["message"];
  throw UserError(message.is_string() ? message.leaf.toStringRef()
                                      : "Expected cond to be True, but got False");
}

Value assert_scalar(const BoundArguments& arguments) {
  if (truth_of(arguments["condition"])) return {};
  throw UserError(arguments.text("message"));
}

Value check_is_size(const BoundArguments& arguments) {
  if (arguments.integer("i") < 0) {
    throw UserError("Expected cond to be True, but got False: a size cannot be negative");
  }
  return {};
}

Value sum_numbers(const BoundArguments& arguments) {
  Value total = Operand(0).value;
  for (const Value& number : unpack(arguments["args"])) {
    total = calculate(BinaryOperation::add, total, number);
  }
  return total;
}

constexpr std::string_view kCheckParameters = "cond, message=None";

constexpr std::array kSymbolFunctions = std::to_array<TorchFunction>({
    {"torch.sym_max", "a, b",
     [](const BoundArguments& arguments) {
       return extreme_number(arguments, Comparison::greater);
     }},
    {"torch.sym_min", "a, b",
     [](const BoundArguments& arguments) { return extreme_number(arguments, Comparison::less); }},
    {"torch.sym_sum", "args", sum_numbers},
    {"torch.sym_not", "a",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(!truth_of(arguments["a"]));
     }},
    {"torch.sym_ite", "b, t, f",
     [](const BoundArguments& arguments) {
       return arguments[truth_of(arguments["b"]) ? "t" : "f"];
     }},
    {"torch.sym_int", "a",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(number_to_integer(arguments["a"]));
     }},
    {"torch.sym_float", "a",
     [](const BoundArguments& arguments) -> Value {
       return c10::IValue(number_to_float(arguments["a"]));
     }},
    {"torch._check", kCheckParameters, check},
    {"torch._check_index", kCheckParameters, check},
    {"torch._check_value", kCheckParameters, check},
    {"torch._check_type", kCheckParameters, check},
    {"torch._check_not_implemented", kCheckParameters, check},
    {"torch._check_tensor_all", "cond, message=None",
     [](const BoundArguments& arguments) -> Value {
       if (arguments.tensor("cond").all().is_nonzero()) return {};
       throw UserError("Expected cond to be True, but got False");
     }},
    {"torch._check_is_size", "i, message=None, *, max=None", check_is_size},
    {"torch._assert", "condition, message", assert_scalar},
});

}  // namespace

FunctionTable symbol_functions() { return kSymbolFunctions; }

}  // namespace assay::aten
