#include "autograd/operator_kinds.h"

#include "assay/error.h"
#include "aten/operator_record.h"

namespace assay::autograd {

using aten::OperatorRecord;
using aten::Work;
using graph::Node;
using graph::Op;

namespace {

OperatorKind kind_of_work(Work work) {
  switch (work) {
    case Work::none:
      return OperatorKind::view;
    case Work::pointwise:
      return OperatorKind::pointwise;
    case Work::gather:
      return OperatorKind::gather;
    case Work::join:
      return OperatorKind::join;
    case Work::reduction:
      return OperatorKind::reduction;
    case Work::expensive:
      return OperatorKind::expensive;
  }
  throw InternalError("unknown kind of work");
}

}  // namespace

OperatorKind kind_of(const Node& node) {
  if (!node.is_call()) return OperatorKind::view;
  if (node.op() != Op::call_function) return OperatorKind::effect;
  if (node.calls("operator.getitem")) {
    const Node* source = node.args().empty() ? nullptr : node.args()[0].node();
    const bool is_of_views =
        source != nullptr && source->is_call() && kind_of(*source) == OperatorKind::view;
    return is_of_views ? OperatorKind::view : OperatorKind::item;
  }
  const OperatorRecord& record = aten::operator_record(node);
  if (record.is_known && record.is_random) return OperatorKind::random;
  return record.is_pure ? kind_of_work(record.work) : OperatorKind::effect;
}

bool must_run(const Node& node) {
  const OperatorKind kind = kind_of(node);
  return kind == OperatorKind::random || kind == OperatorKind::effect;
}

bool fuses_with_inputs(const Node& node) {
  const OperatorKind kind = kind_of(node);
  return kind != OperatorKind::expensive && kind != OperatorKind::effect;
}

bool gives_one_tensor(const Node& node) {
  if (node.op() != Op::call_function) return node.op() == Op::placeholder;
  return aten::operator_record(node).returns_one_tensor;
}

}  // namespace assay::autograd
