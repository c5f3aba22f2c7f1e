#include "graph/device_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace assay::graph {

namespace {

// The names that out-of-tree backends register with torch.utils.rename_privateuse1_backend.
constexpr std::array<std::string_view, 11> kOutOfTree = {
    "dipu", "gcu", "maca", "mlu", "musa", "npu", "openreg", "ptpu", "sdaa", "spyre", "tpu"};

}  // namespace

std::optional<c10::Device> device_from_name(const std::string& name) {
  const auto colon = name.find(':');
  if (std::ranges::find(kOutOfTree, std::string_view(name).substr(0, colon)) != kOutOfTree.end()) {
    c10::DeviceIndex index = -1;
    if (colon != std::string::npos) {
      const char* end = name.data() + name.size();
      const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, index);
      if (error != std::errc() || stop != end || index < 0) return std::nullopt;
    }
    return c10::Device(c10::DeviceType::PrivateUse1, index);
  }
  try {
    return c10::Device(name);
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

}  // namespace assay::graph
