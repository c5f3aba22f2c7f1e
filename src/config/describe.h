/// \file Every setting as it is now: for `assay config` and the Python package.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/store.h"

namespace assay::config {

struct Description {
  const Setting* setting;
  std::optional<Value> value;  ///< Nothing if the environment has a bad one.
  Origin origin;
  std::string error;  ///< Then this says what is wrong.
};

/// One for each row of the table, in its order.
std::vector<Description> describe_settings();

}  // namespace assay::config
