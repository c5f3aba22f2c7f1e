#include "config/describe.h"

namespace assay::config {

std::vector<Description> describe_settings() {
  std::vector<Description> all;
  for (std::size_t index = 0; index < settings.size(); ++index) {
    Description& row = all.emplace_back(Description{&settings[index], {}, {}, {}});
    try {
      auto [value, origin] = current_value(index);
      row.value = std::move(value);
      row.origin = std::move(origin);
    } catch (const UserError& error) {
      row.error = error.what();
    }
  }
  return all;
}

}  // namespace assay::config
