/// \file KernelEmitter::define, which its files share.
#pragma once

#include "kernels/emit/kernel_emitter.h"

namespace assay::kernels {

template <typename Expression>
void KernelEmitter::define(ValueId id, const Context& context, Expression&& expression) {
  Value& value = values_[id];
  value.names.clear();
  const bool varying = is_varying(id);
  const std::string type = value_type(id, varying ? context.lanes : 1);
  const int copies = varying ? context.copies : 1;
  for (int copy = 0; copy < copies; ++copy) {
    std::string name = value_name(id);
    if (copies > 1) name += static_cast<char>('a' + copy);
    line("const " + type + " " + name + " = " + expression(copy, varying ? context.lanes : 1) +
         ";");
    value.names.push_back(std::move(name));
  }
}

}  // namespace assay::kernels
