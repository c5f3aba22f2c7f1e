/// \file The failure of a backend itself, as opposed to that of one operator of the graph
/// (`aten::OperatorError`).
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "graph/provenance.h"

namespace assay::backends {

class BackendError : public std::runtime_error {
 public:
  BackendError(std::string_view backend, const std::string& message, std::string node = {},
               graph::Provenance provenance = {})
      : std::runtime_error("backend '" + std::string(backend) + "': " + message),
        message_(message),
        node_(std::move(node)),
        provenance_(std::move(provenance)) {}

  /// Without the backend's name.
  const std::string& message() const { return message_; }
  /// The node it is about; empty if there is none.
  const std::string& node() const { return node_; }
  /// The nodes of earlier stages that it was made of.
  const graph::Provenance& provenance() const { return provenance_; }

 private:
  std::string message_;
  std::string node_;
  graph::Provenance provenance_;
};

}  // namespace assay::backends
