#include "graph/python_operators.h"

#include <algorithm>
#include <array>

namespace assay::graph {

namespace {

using Form = PythonOperator::Form;

constexpr std::array kOperators = {
    PythonOperator{"operator.add", "+", Form::binary},
    PythonOperator{"operator.sub", "-", Form::binary},
    PythonOperator{"operator.mul", "*", Form::binary},
    PythonOperator{"operator.truediv", "/", Form::binary},
    PythonOperator{"operator.floordiv", "//", Form::binary},
    PythonOperator{"operator.mod", "%", Form::binary},
    PythonOperator{"operator.pow", "**", Form::binary},
    PythonOperator{"operator.matmul", "@", Form::binary},
    PythonOperator{"operator.lshift", "<<", Form::binary},
    PythonOperator{"operator.rshift", ">>", Form::binary},
    PythonOperator{"operator.and_", "&", Form::binary},
    PythonOperator{"operator.or_", "|", Form::binary},
    PythonOperator{"operator.xor", "^", Form::binary},
    PythonOperator{"operator.neg", "-", Form::unary},
    PythonOperator{"operator.pos", "+", Form::unary},
    PythonOperator{"operator.invert", "~", Form::unary},
    PythonOperator{"operator.eq", "==", Form::compare},
    PythonOperator{"operator.ne", "!=", Form::compare},
    PythonOperator{"operator.lt", "<", Form::compare},
    PythonOperator{"operator.gt", ">", Form::compare},
    PythonOperator{"operator.le", "<=", Form::compare},
    PythonOperator{"operator.ge", ">=", Form::compare},
    PythonOperator{"operator.iadd", "+=", Form::in_place},
    PythonOperator{"operator.isub", "-=", Form::in_place},
    PythonOperator{"operator.imul", "*=", Form::in_place},
    PythonOperator{"operator.itruediv", "/=", Form::in_place},
    PythonOperator{"operator.ifloordiv", "//=", Form::in_place},
    PythonOperator{"operator.imod", "%=", Form::in_place},
    PythonOperator{"operator.ipow", "**=", Form::in_place},
    PythonOperator{"operator.imatmul", "@=", Form::in_place},
    PythonOperator{"operator.ilshift", "<<=", Form::in_place},
    PythonOperator{"operator.irshift", ">>=", Form::in_place},
    PythonOperator{"operator.iand", "&=", Form::in_place},
    PythonOperator{"operator.ior", "|=", Form::in_place},
    PythonOperator{"operator.ixor", "^=", Form::in_place},
};

}  // namespace

const PythonOperator* operator_of_function(std::string_view function) {
  if (!function.starts_with("operator.")) return nullptr;
  const auto* found = std::ranges::find(kOperators, function, &PythonOperator::function);
  return found == kOperators.end() ? nullptr : found;
}

const PythonOperator* operator_of_symbol(std::string_view symbol, Form form) {
  const auto* found = std::ranges::find_if(kOperators, [&](const PythonOperator& candidate) {
    return candidate.form == form && candidate.symbol == symbol;
  });
  return found == kOperators.end() ? nullptr : found;
}

}  // namespace assay::graph
