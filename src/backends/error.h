/// \file The failure of a backend itself, as opposed to that of one operator of the graph
/// (`aten::OperatorError`).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace assay::backends {

class BackendError : public std::runtime_error {
 public:
  BackendError(std::string_view backend, const std::string& message, std::string node = {})
      : std::runtime_error("backend '" + std::string(backend) + "': " + message),
        message_(message),
        node_(std::move(node)) {}

  /// Without the backend's name.
  const std::string& message() const { return message_; }
  /// The node it is about; empty if there is none.
  const std::string& node() const { return node_; }

 private:
  std::string message_;
  std::string node_;
};

}  // namespace assay::backends
