#include "autograd/joint_pipeline.h"

#include "aten/facts.h"

namespace assay::autograd {

void clean_up_joint(graph::Graph& joint) {
  graph::Pipeline pipeline(aten::pass_options());

  // First, because a trace holds much that nobody uses (gradients of inputs that need none), and
  // the passes below need not look at it.
  pipeline.run("dead_code", joint);

  // Before noops: equal views become one, which is then removed once.
  pipeline.run("common_subexpressions", joint);

  // Last: it hands the users of a view over to the view's source, so it leaves no dead code behind.
  pipeline.run("noops", joint);
}

}  // namespace assay::autograd
