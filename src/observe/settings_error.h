// What is thrown when a person's settings make no sense: TORCH_LOGS, a format, a path.
#pragma once

#include "assay/error.h"

namespace assay::observe {

/// Settings that cannot be used; what() is written for the person who typed them.
class SettingsError : public UserError {
 public:
  using UserError::UserError;
  const char* python_class() const noexcept override { return "SettingsError"; }
};

/// TORCH_LOGS was `help`: what() is the help text. Stock PyTorch raises here too; a command line
/// can catch it first, print it and end well.
class HelpRequested : public SettingsError {
 public:
  using SettingsError::SettingsError;
};

}  // namespace assay::observe
