#include "reduce/inputs.h"

#include <ATen/ops/empty.h>

namespace assay::reduce {

namespace {

std::int64_t element_count(const graph::TensorMeta& meta) {
  std::int64_t count = 1;
  for (const graph::SizeExpr& size : meta.sizes) count *= *size.constant();
  return count;
}

}  // namespace

std::vector<std::int64_t> sizes_of(const repro::TensorInput& input) {
  std::vector<std::int64_t> sizes;
  for (const graph::SizeExpr& size : input.meta.sizes) sizes.push_back(*size.constant());
  return sizes;
}

std::int64_t count_elements(const Candidate& program) {
  std::int64_t count = 0;
  for (const repro::Input& input : program.inputs) {
    if (const auto* tensor = std::get_if<repro::TensorInput>(&input)) {
      count += element_count(tensor->meta);
    }
  }
  return count;
}

at::Tensor input_contents(const Candidate& program, std::size_t input,
                          const repro::ContentStore& store) {
  const auto& described = std::get<repro::TensorInput>(program.inputs[input]);
  const repro::StorageSpec& spec = program.storages[described.storage];
  if (spec.hash.empty()) return {};
  const c10::Storage storage =
      store.read(spec.hash, static_cast<std::size_t>(*spec.bytes.constant()));
  std::vector<std::int64_t> strides;
  for (const graph::SizeExpr& stride : described.meta.strides) {
    strides.push_back(*stride.constant());
  }
  at::Tensor tensor = at::empty({0}, at::TensorOptions(described.meta.dtype));
  tensor.set_(storage, *described.storage_offset.constant(), sizes_of(described), strides);
  if (described.is_conjugate) tensor.unsafeGetTensorImpl()->_set_conj(true);
  if (described.is_negative) tensor.unsafeGetTensorImpl()->_set_neg(true);
  return tensor;
}

void set_contents(Candidate& program, std::size_t input, const at::Tensor& contents,
                  repro::ContentStore& store) {
  // A copy of its own: a view's storage may be larger.
  const at::Tensor compact =
      contents.resolve_conj().resolve_neg().clone(at::MemoryFormat::Contiguous);
  graph::TensorMeta meta;
  meta.dtype = compact.scalar_type();
  for (std::int64_t size : compact.sizes()) meta.sizes.emplace_back(size);
  set_made_up(program, input, std::move(meta));
  const auto& described = std::get<repro::TensorInput>(program.inputs[input]);
  program.storages[described.storage].hash = store.write(compact.storage());
}

void set_made_up(Candidate& program, std::size_t input, graph::TensorMeta meta) {
  auto& described = std::get<repro::TensorInput>(program.inputs[input]);
  meta.requires_grad = described.meta.requires_grad;
  meta.device = described.meta.device;
  meta.strides = graph::contiguous_strides(meta.sizes);
  repro::StorageSpec spec;
  spec.bytes = element_count(meta) * static_cast<std::int64_t>(c10::elementSize(meta.dtype));
  spec.dtype_hint = meta.dtype;
  spec.device = meta.device;
  described.meta = std::move(meta);
  described.storage_offset = 0;
  described.is_conjugate = false;
  described.is_negative = false;
  described.storage = program.storages.size();
  program.storages.push_back(std::move(spec));
  prune_storages(program);
}

}  // namespace assay::reduce
