/// \file Python-level functions that are more than a rename of an ATen operator, done in C++:
/// `torch.nn.functional.embedding` swaps its arguments, `x[..., 0]` is several operators, and so
/// on.
///
/// Functions that only forward to an operator of the same name (`torch.relu`, `x.view`) are not
/// listed here; aten/resolve.h finds those by rule.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "assay/error.h"
#include "aten/match.h"
#include "aten/value.h"

namespace assay::aten {

/// A parsed parameter list; made once for each text.
struct ParameterList;

/// The arguments of a Python-level call, bound to the function's parameters.
class BoundArguments {
 public:
  /// Binds `arguments` to `parameters`, a Python parameter list such as
  /// `input, p=0.5, training=True, *, inplace=False`. `*name` collects what is left as a tuple,
  /// `**name` as a dict. Throws `UserError` as Python would raise TypeError: a missing, doubled or
  /// unknown argument.
  BoundArguments(std::string_view function, std::string_view parameters, Arguments arguments);

  /// The name of the function that was called; several names may share one implementation.
  std::string_view function() const { return function_; }

  /// The value of a parameter; a mistyped name is an internal error.
  const Value& operator[](std::string_view parameter) const;
  /// The value of a parameter as one type; throws `UserError` if it has another.
  bool truth(std::string_view parameter) const;
  std::int64_t integer(std::string_view parameter) const;
  double number(std::string_view parameter) const;
  std::string text(std::string_view parameter) const;
  at::Tensor tensor(std::string_view parameter) const;

 private:
  UserError wrong_type(std::string_view parameter, const char* expected) const;

  std::string_view function_;
  const ParameterList* parameters_;
  std::vector<Value> values_;
};

struct TorchFunction {
  std::string_view name;        ///< `torch.nn.functional.dropout`, `operator.getitem`, ...
  std::string_view parameters;  ///< Python's own parameter list.
  Value (*run)(const BoundArguments& arguments);
};

/// The implementation of a function by its qualified name, or nullptr.
const TorchFunction* find_torch_function(std::string_view name);
/// The implementation of a tensor method (`split`, `size`, ...), or nullptr; its first parameter is
/// `self`.
const TorchFunction* find_torch_method(std::string_view name);

/// True for functions and methods that PyTorch implements in Python, so that calling the operator
/// of the same name would be wrong. Those not in the tables above need a Python process.
bool is_python_function(std::string_view name);
bool is_python_method(std::string_view name);

}  // namespace assay::aten
