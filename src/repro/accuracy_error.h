/// \file Thrown at repro level 4 when a compiled graph's results are not eager's.
#pragma once

#include <stdexcept>
#include <string>

namespace assay::repro {

class AccuracyError : public std::runtime_error {
 public:
  /// `difference` says where, by how much, and what was allowed.
  explicit AccuracyError(const std::string& difference)
      : std::runtime_error("Bad accuracy detected: " + difference) {}
};

}  // namespace assay::repro
