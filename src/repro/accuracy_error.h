/// \file Thrown at repro level 4 when a compiled graph's results are not eager's.
#pragma once

#include <string>

#include "aten/failure.h"

namespace assay::repro {

class AccuracyError : public aten::ProgramError {
 public:
  /// `difference` says where, by how much, and what was allowed.
  explicit AccuracyError(const std::string& difference)
      : ProgramError("AccuracyError", "Bad accuracy detected: " + difference, difference) {}

  const char* python_class() const noexcept override { return "AccuracyError"; }
};

}  // namespace assay::repro
