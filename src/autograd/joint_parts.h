/// \file What the nodes of a joint graph belong to: the forward, the backward, or either. Shared by
/// the partitioners (autograd/partition.h).
#pragma once

#include <cstddef>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace assay::autograd {

enum class Place {
  dead,      ///< Nothing needs it.
  forward,   ///< Forward outputs need it, it has an effect or is random, or comes with forward.
  either,    ///< Only gradients need it, but it depends on no tangent.
  backward,  ///< Depends on a tangent.
};

struct JointParts {
  /// Throws `UserError` if `joint` does not have the form of a joint graph.
  JointParts(const graph::Graph& joint, std::size_t forward_outputs);

  Place place(const graph::Node& node) const;
  bool is_gradient(const graph::Node& node) const { return gradient_nodes.contains(&node); }

  const graph::Graph& joint;
  std::vector<const graph::Node*> primals;  ///< Every placeholder that is no tangent.
  std::vector<const graph::Node*> tangents;
  std::vector<graph::Argument> forward_outputs;
  std::vector<graph::Argument> gradients;
  std::unordered_set<const graph::Node*> gradient_nodes;
  std::vector<const graph::Node*> kept_in_forward;   ///< Effects and random numbers.
  std::vector<const graph::Node*> kept_in_backward;  ///< Those that depend on a tangent.
  std::unordered_map<const graph::Node*, Place> places;

 private:
  void read_signature(std::size_t forward_output_count);
  bool comes_with_forward(const graph::Node& node) const;
  void find_places();
};

}  // namespace assay::autograd
