// From a joint graph to forward and backward graphs.
#include "aten/facts.h"
#include "autograd/partition.h"
#include "autograd/partitioners.h"

namespace assay::autograd {

namespace {

std::vector<const graph::Graph*> halves(const Partition& partition) {
  return {partition.forward.get(), partition.backward.get()};
}

}  // namespace

Partition partition_default(const graph::Graph& joint, std::size_t forward_outputs) {
  graph::Pipeline pipeline(aten::pass_options_for(joint));

  // Alone: it saves what eager autograd would, so nothing is rewritten before.
  return pipeline.make(
      "partition_default", [&] { return save_what_backward_uses(joint, forward_outputs); }, halves);
}

Partition partition_min_cut(const graph::Graph& joint, std::size_t forward_outputs) {
  graph::Pipeline pipeline(aten::pass_options_for(joint));
  const auto merged = joint.clone();

  // Before the cut: autograd's formulas call again what forward has called, and a value that has
  // two names would be saved and recomputed. (A joint graph from a file has had no passes.)
  pipeline.run("common_subexpressions", *merged);

  // Last: its halves are what is compiled.
  return pipeline.make(
      "partition_min_cut", [&] { return save_fewest_bytes(*merged, forward_outputs); }, halves);
}

}  // namespace assay::autograd
