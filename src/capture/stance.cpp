#include "capture/stance.h"

#include <array>
#include <utility>

namespace assay::capture {

namespace {

Stance& current() {
  static Stance stance = Stance::normal;
  return stance;
}

}  // namespace

std::optional<Stance> stance_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Stance>, 6> kNames{{
      {"default", Stance::normal},
      {"eager_then_compile", Stance::normal},
      {"aot_eager_then_compile", Stance::normal},
      {"force_eager", Stance::force_eager},
      {"eager_on_recompile", Stance::eager_on_recompile},
      {"fail_on_recompile", Stance::fail_on_recompile},
  }};
  for (const auto& [known, stance] : kNames) {
    if (known == name) return stance;
  }
  return std::nullopt;
}

Stance stance() { return current(); }

void set_stance(Stance stance) { current() = stance; }

}  // namespace assay::capture
