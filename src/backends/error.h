/// \file The failure of a backend itself, as opposed to that of one operator of the graph
/// (`aten::OperatorError`).
#pragma once

#include <string>
#include <string_view>

#include "aten/failure.h"
#include "graph/provenance.h"

namespace assay::backends {

class BackendError : public aten::ProgramError {
 public:
  BackendError(std::string_view backend, const std::string& message, std::string node = {},
               graph::Provenance provenance = {})
      : ProgramError("BackendError", "backend '" + std::string(backend) + "': " + message, message,
                     std::move(node), std::move(provenance)) {}

  const char* python_class() const noexcept override { return "BackendCompilerFailed"; }

 protected:
  struct Text {
    std::string whole;
  };
  /// With a text that says more than the message.
  BackendError(const Text& text, std::string message)
      : ProgramError("BackendError", text.whole, std::move(message)) {}
};

}  // namespace assay::backends
