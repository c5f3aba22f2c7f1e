#include "aten/overlapping_writes.h"

#include <ATen/FunctionalStorageImpl.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <string_view>
#include <typeinfo>

#include "assay/error.h"
#include "aten/current_node.h"
#include "aten/memory_overlap.h"
#include "aten/operators.h"
#include "aten/trace_keys.h"

namespace assay::aten {

namespace {

using at::Tensor;
using Stack = std::vector<c10::IValue>;
namespace functional = at::functionalization::impl;

// A tensor among the arguments of a call.
struct CallOperand {
  Tensor tensor;
  std::size_t index_in_list = 0;
  bool is_in_list = false;
  bool is_written = false;
};

// Normalization layers write their statistics in training, without their schemas saying so.
bool is_statistic(const c10::Argument& argument) {
  return argument.name() == "running_mean" || argument.name() == "running_var";
}

bool is_training(const c10::FunctionSchema& schema, const c10::IValue* arguments) {
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const std::string& name = schema.arguments()[i].name();
    if (name != "training" && name != "train" && name != "use_input_stats") continue;
    if (arguments[i].isBool()) return arguments[i].toBool();
  }
  return false;
}

bool may_write(const c10::FunctionSchema& schema) {
  return schema.is_mutable() || std::ranges::any_of(schema.arguments(), is_statistic);
}

std::vector<CallOperand> operands_of(const c10::FunctionSchema& schema,
                                     const c10::IValue* arguments) {
  std::vector<CallOperand> operands;
  const auto add = [&](const Tensor& tensor, CallOperand operand) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.layout() != c10::kStrided) return;
    operand.tensor = tensor;
    operands.push_back(std::move(operand));
  };
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    CallOperand operand;
    operand.is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (is_statistic(argument)) operand.is_written |= is_training(schema, arguments);
    if (arguments[i].isTensor()) {
      add(arguments[i].toTensor(), operand);
    } else if (arguments[i].isTensorList() || arguments[i].isOptionalTensorList()) {
      operand.is_in_list = true;
      for (const c10::IValue& item : arguments[i].toListRef()) {
        if (item.isTensor()) add(item.toTensor(), operand);
        ++operand.index_in_list;
      }
    }
  }
  return operands;
}

enum class WrittenThrough { plain_memory, shared_elements, view_by_strides, windows_with_gaps };

bool is_called(const at::functionalization::ViewMeta& step, std::string_view view) {
  return std::string_view(typeid(step).name()).find(view) != std::string_view::npos;
}

// Views that look at the storage, of which functionalization knows nothing behind another view.
// (`is_as_strided` is not set for as_strided_.)
bool is_by_strides(const at::functionalization::ViewMeta& step) {
  return step.is_as_strided || is_called(step, "as_strided_") || is_called(step, "resize_");
}

// A write to a view is written back to its base through every view between them.
WrittenThrough written_through(const Tensor& tensor) {
  if (overlaps_internally(tensor)) return WrittenThrough::shared_elements;
  if (!functional::isFunctionalTensor(tensor)) return WrittenThrough::plain_memory;
  const NotTracedScope guard;
  auto* storage = static_cast<at::functionalization::FunctionalStorageImpl*>(
      tensor.storage().unsafeGetStorageImpl());
  Tensor view = storage->base();
  if (overlaps_internally(view)) return WrittenThrough::shared_elements;
  const auto& steps = functional::unsafeGetFunctionalWrapper(tensor)->view_metas();
  for (const auto& step : steps) {
    if (is_by_strides(*step) && &step != &steps.front()) return WrittenThrough::view_by_strides;
    const std::int64_t elements = view.numel();
    view = step->forward(view);
    // The inverse of unfold writes zeros between the windows.
    if (is_called(*step, "unfold") && view.numel() < elements)
      return WrittenThrough::windows_with_gaps;
    if (overlaps_internally(view)) return WrittenThrough::shared_elements;
  }
  return WrittenThrough::plain_memory;
}

// True if the operator reads each element before it writes to its place, and no element after.
bool is_elementwise(const c10::OperatorHandle& op) {
  const std::string_view name = op.operator_name().name;
  return op.hasTag(at::Tag::pointwise) || name == "aten::copy_" || name == "aten::masked_fill_" ||
         name == "aten::where";
}

bool may_share_elements(const c10::OperatorHandle& op, const CallOperand& written,
                        const CallOperand& other) {
  if (other.is_written || !has_same_elements(written.tensor, other.tensor)) return false;
  if (!written.is_in_list) return is_elementwise(op);
  // The operators on lists go through them one index after another.
  return op.operator_name().name.starts_with("aten::_foreach_") && other.is_in_list &&
         other.index_in_list == written.index_in_list;
}

// Where in the user's program the call stands, as far as the traced graph says.
std::string where() {
  std::string text;
  if (current_node == nullptr) return text;
  for (const graph::StackFrame& frame : current_node->meta.stack) {
    text += "\n  File \"" + frame.file + "\", line " + std::to_string(frame.line) + ", in " +
            frame.function;
    if (!frame.text.empty()) text += "\n    " + frame.text;
  }
  return text;
}

void refuse_operand(const c10::OperatorHandle& op, const Tensor& written) {
  switch (written_through(written)) {
    case WrittenThrough::plain_memory:
      return;
    case WrittenThrough::shared_elements:
      throw TraceError(python_name(op) +
                           " mutates a tensor whose elements overlap in memory, which a "
                           "functional graph cannot do the way eager does" +
                           where(),
                       "mutate a clone() of it, or run this part with backend \"eager\"");
    case WrittenThrough::windows_with_gaps:
      throw TraceError(python_name(op) +
                           " mutates a tensor through unfold() with gaps between its windows" +
                           where(),
                       "slice the tensor instead");
    case WrittenThrough::view_by_strides:
      throw TraceError(python_name(op) +
                           " mutates a tensor through as_strided() or resize_() of a view" +
                           where(),
                       "use other view operators, or as_strided() of the whole tensor");
  }
}

// Functionalization takes the result for the new value of `out`. Its strides may be others, and
// then it cannot be written back through view().
void refuse_out(const c10::OperatorHandle& op, const Tensor& written) {
  if (!op.hasTag(at::Tag::out) || written.is_contiguous()) return;
  if (!functional::isFunctionalTensor(written)) return;
  for (const auto& step : functional::unsafeGetFunctionalWrapper(written)->view_metas()) {
    const std::string_view type = typeid(*step).name();
    if (!type.ends_with("view_ViewMetaE")) continue;
    throw TraceError(
        python_name(op) + " writes to an out= argument that is a non-contiguous view" + where(),
        "copy_() the result to that view instead");
  }
}

TraceError viewed_by_offset(const c10::OperatorHandle& op) {
  return TraceError(python_name(op) +
                        " views an input by its storage offset, and the input is also mutated" +
                        where(),
                    "call as_strided() without an offset, or slice the input");
}

}  // namespace

void OverlappingWrites::add_input(const Tensor& tensor, bool is_copied) {
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  inputs_.insert(storage);
  if (is_copied) written_.insert(storage);
}

void OverlappingWrites::refuse(const c10::OperatorHandle& op, const Stack& stack) {
  const c10::FunctionSchema& schema = op.schema();
  const c10::IValue* arguments = stack.data() + stack.size() - schema.arguments().size();
  refuse_offset(op, arguments);
  if (!may_write(schema)) return;
  const std::vector<CallOperand> operands = operands_of(schema, arguments);
  for (const CallOperand& written : operands) {
    if (!written.is_written) continue;
    refuse_operand(op, written.tensor);
    refuse_out(op, written.tensor);
    add_write(op, written.tensor);
    for (const CallOperand& other : operands) {
      if (&other == &written || !overlap(written.tensor, other.tensor) ||
          may_share_elements(op, written, other)) {
        continue;
      }
      throw TraceError(
          python_name(op) + " mutates memory that overlaps another of its arguments" + where(),
          "pass a clone() of that argument, or run this part with backend \"eager\"");
    }
  }
}

void OverlappingWrites::refuse_offset(const c10::OperatorHandle& op, const c10::IValue* arguments) {
  if (!op.operator_name().name.starts_with("aten::as_strided")) return;
  const c10::FunctionSchema& schema = op.schema();
  const auto offset = schema.argumentIndexWithName("storage_offset");
  if (!offset || arguments[*offset].isNone()) return;
  const c10::StorageImpl* storage = arguments[0].toTensor().storage().unsafeGetStorageImpl();
  if (!inputs_.contains(storage)) return;
  if (written_.contains(storage)) throw viewed_by_offset(op);
  // as_strided_copy and as_strided_scatter read it once; of a view, later writes are seen.
  const bool is_view = schema.arguments()[0].alias_info() != nullptr;
  if (is_view) viewed_by_offset_.insert(storage);
}

void OverlappingWrites::add_write(const c10::OperatorHandle& op, const Tensor& tensor) {
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  if (viewed_by_offset_.contains(storage)) throw viewed_by_offset(op);
  written_.insert(storage);
}

}  // namespace assay::aten
