/// \file Devices by name, including accelerators that live outside of PyTorch (`npu`, `mlu`): files
/// name them, although this process cannot have one. Used wherever a file spells a device.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>

namespace assay::graph {

/// `cpu`, `cuda:0`, `npu`. A device that PyTorch does not know itself is of the type PrivateUse1.
/// Nothing if it is not the name of a device.
std::optional<c10::Device> device_from_name(const std::string& name);

}  // namespace assay::graph
