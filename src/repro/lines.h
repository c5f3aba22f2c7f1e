/// \file The lines of a text. Used where graphs are looked for in texts that are not Python.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace assay::repro {

inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace assay::repro
