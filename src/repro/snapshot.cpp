#include "repro/snapshot.h"

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "aten/operator_record.h"
#include "repro/write.h"

namespace assay::repro {

namespace {

using aten::Value;

c10::Storage copy_of(const c10::Storage& storage) {
  c10::Storage made(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(storage.nbytes()),
                    c10::GetCPUAllocator(), /*resizable=*/true);
  if (storage.nbytes() != 0) std::memcpy(made.mutable_data(), storage.data(), storage.nbytes());
  return made;
}

std::optional<graph::Argument> as_constant(const Value& value) {
  if (value.kind == Value::Kind::dtype) {
    return graph::Argument(static_cast<c10::ScalarType>(value.leaf.toInt()));
  }
  if (value.is_bool()) return graph::Argument(value.leaf.toBool());
  if (value.is_float()) return graph::Argument(value.leaf.toDouble());
  if (value.is_string()) return graph::Argument(value.leaf.toStringRef());
  if (value.is_leaf() && value.leaf.isComplexDouble()) {
    const c10::complex<double> number = value.leaf.toComplexDouble();
    return graph::Argument(std::complex<double>(number.real(), number.imag()));
  }
  return std::nullopt;
}

class Taker {
 public:
  explicit Taker(bool copies) : copies_(copies) {}

  void add(const std::string& name, const Value& value) {
    snapshot_.constants.emplace_back();
    if (value.is_tensor() && value.leaf.toTensor().defined()) {
      add_tensor(name, value.leaf.toTensor());
    } else if (value.is_none() || value.is_tensor()) {
      snapshot_.inputs.emplace_back(ConstantInput{name});
    } else if (value.is_int()) {
      snapshot_.inputs.emplace_back(IntegerInput{value.leaf.toInt(), {}});
    } else if (auto constant = as_constant(value)) {
      snapshot_.inputs.emplace_back(ConstantInput{name});
      snapshot_.constants.back() = std::move(constant);
    } else {
      snapshot_.inputs.emplace_back(UnsupportedInput{name});
    }
  }

  Snapshot take() { return std::move(snapshot_); }

 private:
  void add_tensor(const std::string& name, const at::Tensor& tensor) {
    if (!tensor.has_storage() || !tensor.is_cpu() || tensor.is_quantized()) {
      snapshot_.inputs.emplace_back(UnsupportedInput{name});
      return;
    }
    const c10::Storage& storage = tensor.storage();
    const auto [known, is_new] =
        known_.try_emplace(storage.unsafeGetStorageImpl(), snapshot_.storages.size());
    if (is_new) {
      snapshot_.storages.push_back(describe_storage(tensor));
      snapshot_.contents.push_back(copies_ ? copy_of(storage) : storage);
    }
    snapshot_.inputs.emplace_back(describe_input(tensor, known->second));
  }

  bool copies_;
  Snapshot snapshot_;
  std::map<const c10::StorageImpl*, std::size_t> known_;
};

}  // namespace

Snapshot take_snapshot(const graph::Graph& graph, const std::vector<Value>& inputs, bool copies) {
  Taker taker(copies);
  const auto placeholders = graph.placeholders();
  for (std::size_t i = 0; i < std::min(inputs.size(), placeholders.size()); ++i) {
    taker.add(placeholders[i]->name(), inputs[i]);
  }
  return taker.take();
}

Snapshot snapshot_of_metadata(const graph::Graph& graph) {
  Snapshot snapshot;
  for (const graph::Node* placeholder : graph.placeholders()) {
    snapshot.constants.emplace_back();
    if (const auto* size = std::get_if<graph::SizeExpr>(&placeholder->meta.value.value)) {
      snapshot.inputs.emplace_back(IntegerInput{size->evaluate({}), {}});
      continue;
    }
    const graph::TensorMeta* meta = placeholder->meta.value.tensor();
    if (meta == nullptr) {
      snapshot.inputs.emplace_back(UnsupportedInput{placeholder->name()});
      continue;
    }
    TensorInput input;
    input.storage = snapshot.storages.size();
    input.meta = *meta;
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < meta->sizes.size(); ++i) {
      elements += std::max<std::int64_t>(meta->sizes[i].evaluate({}) - 1, 0) *
                  meta->strides[i].evaluate({});
    }
    StorageSpec spec;
    spec.bytes = elements * static_cast<std::int64_t>(c10::elementSize(meta->dtype));
    spec.device = meta->device;
    spec.dtype_hint = meta->dtype;
    snapshot.storages.push_back(std::move(spec));
    snapshot.contents.emplace_back();
    snapshot.inputs.emplace_back(std::move(input));
  }
  return snapshot;
}

bool may_change_inputs(const graph::Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const graph::Node& node) {
    return node.is_call() && aten::operator_record(node).may_write();
  });
}

}  // namespace assay::repro
