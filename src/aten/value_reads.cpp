#include "aten/value_reads.h"

#include "assay/error.h"
#include "aten/operator_record.h"
#include "aten/operators.h"
#include "aten/trace_keys.h"

namespace assay::aten {

namespace {

thread_local RefuseValueReadsScope* active_refusal = nullptr;

bool is_mask(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.scalar_type() == c10::ScalarType::Bool ||
                              tensor.scalar_type() == c10::ScalarType::Byte);
}

// Indexing with integers gives a result whose size does not depend on them; with a mask it does.
bool has_mask(const std::vector<c10::IValue>& stack) {
  const c10::IValue& indices = stack.back();
  if (!indices.isList()) return true;
  for (const c10::IValue& index : indices.toListRef()) {
    if (index.isTensor() && is_mask(index.toTensor())) return true;
  }
  return false;
}

bool chooses_sizes_by_values(const OperatorRecord& record, const std::vector<c10::IValue>& stack) {
  if (record.sizes_from_values == SizesFromValues::if_unsized) return stack.back().isNone();
  return record.sizes_from_values == SizesFromValues::always ||
         (record.sizes_from_values == SizesFromValues::if_masked && has_mask(stack));
}

}  // namespace

bool reads_values(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack) {
  const OperatorRecord& record = operator_record(op);
  return record.reads_values || chooses_sizes_by_values(record, stack);
}

void refuse_value_read(const c10::OperatorHandle& op, const std::vector<c10::IValue>& stack,
                       const std::function<std::string()>& where) {
  if (!reads_values(op, stack)) return;
  const bool sizes = chooses_sizes_by_values(operator_record(op), stack);
  std::string what = "the program reads the value of a tensor (" + python_name(op) +
                     "), which would be baked into the graph";
  if (sizes) {
    what = "the size of the result of " + python_name(op) +
           " depends on the values of its arguments, so the graph would be valid for these only";
  }
  if (where) what += where();
  throw TraceError(std::move(what),
                   sizes ? "do this part outside of the compiled function"
                         : "keep it a tensor (torch.where instead of if), or pass it as a number");
}

RefuseValueReadsScope::RefuseValueReadsScope(std::function<std::string()> where)
    : below_(kBelowAutograd), where_(std::move(where)), saved_(active_refusal) {
  register_trace_keys();
  active_refusal = this;
}

RefuseValueReadsScope::~RefuseValueReadsScope() { active_refusal = saved_; }

void RefuseValueReadsScope::check(const c10::OperatorHandle& op,
                                  const std::vector<c10::IValue>& stack) {
  if (active_refusal == nullptr) return;
  try {
    refuse_value_read(op, stack, active_refusal->where_);
  } catch (const TraceError& error) {
    active_refusal->error_ = error;
    throw;
  }
}

}  // namespace assay::aten
