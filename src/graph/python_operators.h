/// \file The functions that FX's text form writes as Python operators: `operator.add` is `x + y`.
#pragma once

#include <string_view>

namespace assay::graph {

struct PythonOperator {
  std::string_view function;  ///< `operator.add`
  std::string_view symbol;    ///< `+`
  enum class Form { binary, unary, compare, in_place } form;
};

/// The operator a function is written as, or nullptr.
const PythonOperator* operator_of_function(std::string_view function);
/// The function behind a symbol in a given form, or nullptr.
const PythonOperator* operator_of_symbol(std::string_view symbol, PythonOperator::Form form);

}  // namespace assay::graph
