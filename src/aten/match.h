/// \file Matches Python-style arguments against an operator's schema, and chooses an overload.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aten/value.h"

namespace assay::aten {

struct Keyword {
  std::string name;
  Value value;
};

/// The arguments of one call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<Keyword> keywords;
};

/// Whose rules apply to the arguments.
enum class Dialect {
  operator_call,  ///< `torch.ops.aten.view.default(x, [2, 3])`: as the schema says.
  function,       ///< `torch.zeros(2, 3)`: a lone list of sizes may be spread over the arguments.
  method,         ///< `x.view(2, 3)`: likewise, after the object.
};

/// Where the value of one schema argument comes from.
struct Binding {
  enum class Source { positional, keyword, default_value, spread };
  Source source;
  std::size_t index = 0;  ///< Of the positional or keyword argument; for `spread` of the first one.
};

/// The shape of a call: how many positional arguments, which keywords.
struct CallShape {
  std::size_t positional = 0;
  std::vector<std::string_view> keywords;
  /// Whether all positional arguments from an index on are integers, so that they may be a list.
  bool integers_from_first = false;
  bool integers_from_second = false;
};

/// Binds every argument of a schema; on failure nothing, and `why` says what is wrong.
std::optional<std::vector<Binding>> bind_schema(const c10::FunctionSchema& schema,
                                                const CallShape& shape, Dialect dialect,
                                                std::string& why);

/// A call ready to be made: every argument of the schema, in order.
struct Match {
  c10::OperatorHandle op;
  std::vector<c10::IValue> stack;
  std::vector<Binding> bindings;  ///< Where each argument came from.
  int cost = 0;
};

/// Fills a schema's arguments from `arguments`; on failure nothing, and `why` says what is wrong.
std::optional<Match> match(const c10::OperatorHandle& op, const Arguments& arguments,
                           Dialect dialect, std::string& why);

/// The cheapest match among `candidates`. Throws `UserError` with the schemas and the reason each
/// was refused if none fits. `call` is how the user wrote the call.
Match match_overload(std::span<const c10::OperatorHandle> candidates, const Arguments& arguments,
                     Dialect dialect, const std::string& call);

/// `aten::relu(Tensor self) -> Tensor`, for messages.
std::string schema_text(const c10::OperatorHandle& op);

}  // namespace assay::aten
