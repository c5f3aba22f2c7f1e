// Copies: the same elements in another memory, layout or dtype.
#include <array>

#include "kernels/lowerings/call.h"
#include "kernels/lowerings/tables.h"

namespace assay::kernels {

namespace {

template <std::size_t position>
Refusal copied(Call& call) {
  Body& body = call.pointwise();
  body.store(call.result(), body.load(call.operand(position)));
  return nullptr;
}

}  // namespace

LoweringTable copy_lowerings() {
  static constexpr auto kRows = std::to_array<Lowering>({
      {"aten::_to_copy", "copy", copied<0>},
      {"aten::clone", "copy", copied<0>},
      {"aten::copy", "copy", copied<1>},
      {"aten::lift_fresh_copy", "copy", copied<0>},
      {"prims::convert_element_type", "copy", copied<0>},
  });
  return kRows;
}

}  // namespace assay::kernels
