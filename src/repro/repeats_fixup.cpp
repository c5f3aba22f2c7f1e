#include "repro/repeats_fixup.h"

#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "assay/error.h"

namespace assay::repro {

namespace {

// The number of counts, if they lie side by side in a storage of their own.
std::optional<std::int64_t> plain_elements(const ReproFile& file, const TensorInput& tensor) {
  std::int64_t elements = 1;
  for (const graph::SizeExpr& size : tensor.meta.sizes) elements *= size.evaluate(file.symbols);
  const std::int64_t bytes = file.storages[tensor.storage].bytes.evaluate(file.symbols);
  constexpr std::int64_t kItem = sizeof(std::int64_t);
  if (elements <= 0 || bytes / kItem != elements) return std::nullopt;
  return elements;
}

}  // namespace

void apply_repeats_fixups(ReproFile& file) {
  for (const RepeatsFixup& fixup : file.repeats_fixups) {
    if (fixup.repeats >= file.inputs.size() || fixup.output_size >= file.inputs.size()) {
      throw UserError(file.source->file + ": load_args mentions an input that does not exist");
    }
    const auto* tensor = std::get_if<TensorInput>(&file.inputs[fixup.repeats]);
    const auto* total = std::get_if<IntegerInput>(&file.inputs[fixup.output_size]);
    if (tensor == nullptr || total == nullptr || tensor->meta.dtype != c10::ScalarType::Long) {
      continue;
    }
    const auto count = plain_elements(file, *tensor);
    if (!count) continue;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(*count), total->value / *count);
    for (std::int64_t i = 0; i < total->value % *count; ++i) ++counts[static_cast<std::size_t>(i)];
    std::string contents(counts.size() * sizeof(std::int64_t), '\0');
    std::memcpy(contents.data(), counts.data(), contents.size());
    const std::string hash = "repeats" + std::to_string(file.inlined_storages.size());
    file.inlined_storages.emplace(hash, std::move(contents));
    file.storages[tensor->storage].hash = hash;
  }
  file.repeats_fixups.clear();
}

}  // namespace assay::repro
