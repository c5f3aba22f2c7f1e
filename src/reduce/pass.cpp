#include "reduce/pass.h"

#include <algorithm>

#include "reduce/passes/passes.h"

namespace assay::reduce {

std::span<const Pass> all_passes() {
  static const std::vector<Pass> table = {
#define PASS(name, needs, description) Pass{passes::name(), #name, Needs::needs, description},
#include "reduce/passes/passes.def"
#undef PASS
  };
  return table;
}

std::vector<Pass> choose_passes(const std::vector<std::string>& names) {
  std::vector<Pass> chosen;
  for (const Pass& pass : all_passes()) {
    if (names.empty() || std::ranges::find(names, pass.name) != names.end()) chosen.push_back(pass);
  }
  return chosen;
}

}  // namespace assay::reduce
