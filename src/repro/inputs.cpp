#include "repro/inputs.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fill.h>
#include <ATen/ops/slice.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "assay/error.h"
#include "aten/call.h"
#include "repro/content_store.h"

namespace assay::repro {

namespace {

using aten::Value;

std::uint64_t physical_memory() {
  const auto pages = sysconf(_SC_PHYS_PAGES);
  const auto page = sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

// As torch._dynamo.testing.rand_strided: normal floats, zeros for everything else.
at::Tensor made_up_elements(std::int64_t count, c10::ScalarType dtype) {
  const Value size = Value::sequence(Value::Kind::list, {c10::IValue(count)});
  const auto dtype_value = [](c10::ScalarType type) {
    return Value(Value::Kind::dtype, static_cast<std::int64_t>(type));
  };
  const auto make = [&](const char* op, c10::ScalarType type) {
    return aten::call(op, {{size}, {{"dtype", dtype_value(type)}}}).leaf.toTensor();
  };
  if (!c10::isFloatingType(dtype)) return make("aten::zeros", dtype);
  if (c10::elementSize(dtype) > 1) return make("aten::randn", dtype);
  const at::Tensor half = make("aten::randn", c10::ScalarType::Half);
  return aten::call("aten::to", {{c10::IValue(half), dtype_value(dtype)}, {}},
                    aten::Dialect::method)
      .leaf.toTensor();
}

class InputLoader {
 public:
  InputLoader(const ReproFile& file, const InputOptions& options)
      : file_(file),
        store_directory_(options.save_directory ? options.save_directory
                                                : storage_directory(file)) {
    if (store_directory_) store_.emplace(*store_directory_);
  }

  Inputs load() {
    const std::vector<std::int64_t> reached = reached_bytes();
    for (std::size_t i = 0; i < file_.storages.size(); ++i) {
      storages_.push_back(storage(file_.storages[i], reached[i]));
    }
    for (const Input& input : file_.inputs) {
      result_.values.push_back(
          std::visit([this](const auto& described) { return this->value(described); }, input));
    }
    note_made_up();
    result_.notes.insert(result_.notes.begin(), file_.notes.begin(), file_.notes.end());
    return std::move(result_);
  }

 private:
  // The bytes that tensors reach in each storage. Stock's minifier shrinks a storage and leaves the
  // offsets; its reader makes a storage that it synthesizes larger again.
  std::vector<std::int64_t> reached_bytes() const {
    std::vector<std::int64_t> reached(file_.storages.size(), 0);
    for (const Input& input : file_.inputs) {
      const auto* tensor = std::get_if<TensorInput>(&input);
      if (tensor == nullptr) continue;
      std::int64_t last = tensor->storage_offset.evaluate(file_.symbols);
      bool is_usable = last >= 0;
      for (std::size_t i = 0; i < tensor->meta.sizes.size(); ++i) {
        const std::int64_t size = tensor->meta.sizes[i].evaluate(file_.symbols);
        const std::int64_t stride = tensor->meta.strides[i].evaluate(file_.symbols);
        std::int64_t reach = 0;
        is_usable = is_usable && size > 0 && stride >= 0 &&
                    !__builtin_mul_overflow(size - 1, stride, &reach) &&
                    !__builtin_add_overflow(last, reach, &last);
      }
      const auto item = static_cast<std::int64_t>(c10::elementSize(tensor->meta.dtype));
      std::int64_t bytes = 0;
      if (!is_usable || __builtin_add_overflow(last, 1, &last) ||
          __builtin_mul_overflow(last, item, &bytes)) {
        continue;  // empty, or refused when it is made
      }
      reached[tensor->storage] = std::max(reached[tensor->storage], bytes);
    }
    return reached;
  }

  void check_memory(std::int64_t bytes) const {
    if (bytes < 0 || static_cast<std::uint64_t>(bytes) > physical_memory()) {
      throw UserError(file_.source->file + ": an input needs " + std::to_string(bytes) +
                      " bytes, more than this machine has");
    }
  }

  c10::Storage storage(const StorageSpec& spec, std::int64_t reached) {
    const std::int64_t bytes = spec.bytes.evaluate(file_.symbols);
    check_memory(bytes);
    if (const auto held = file_.inlined_storages.find(spec.hash);
        held != file_.inlined_storages.end()) {
      ++result_.loaded_storages;
      return storage_of(held->second, static_cast<std::size_t>(bytes));
    }
    if (!spec.hash.empty() && store_ && store_->contains(spec.hash)) {
      ++result_.loaded_storages;
      return store_->read(spec.hash, static_cast<std::size_t>(bytes));
    }
    ++result_.made_up_storages;
    if (!spec.hash.empty() && first_missing_.empty()) first_missing_ = spec.hash;
    check_memory(reached);
    const auto item = static_cast<std::int64_t>(c10::elementSize(spec.dtype_hint));
    const std::int64_t count = std::max(bytes / item, (reached + item - 1) / item);
    return made_up_elements(count, spec.dtype_hint).storage();
  }

  c10::Storage storage_of(const std::string& contents, std::size_t bytes) const {
    if (contents.size() != bytes) {
      throw UserError(file_.source->file + ": a storage in the file has " +
                      std::to_string(contents.size()) + " bytes, the reader expects " +
                      std::to_string(bytes));
    }
    c10::Storage made(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                      c10::GetCPUAllocator(), /*resizable=*/true);
    if (bytes != 0) std::memcpy(made.mutable_data(), contents.data(), bytes);
    return made;
  }

  // As stock does: whole numbers of equal size, the first ones larger by what is left.
  void note_made_up() {
    if (result_.made_up_storages == 0) return;
    const std::string count =
        std::to_string(result_.made_up_storages) + " of " + std::to_string(file_.storages.size());
    std::string why = "the file has only their shapes";
    if (!first_missing_.empty()) {
      why = "storage " + first_missing_ + " is not in " +
            (store_directory_ ? (*store_directory_ / "storages").string() : "any directory");
    }
    result_.notes.push_back("inputs are not the original ones: " + count +
                            " storages were synthesized (random floats, zero integers), because " +
                            why);
  }

  Value value(const TensorInput& input) {
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    for (const auto& size : input.meta.sizes) sizes.push_back(size.evaluate(file_.symbols));
    for (const auto& stride : input.meta.strides) strides.push_back(stride.evaluate(file_.symbols));
    const std::int64_t offset = input.storage_offset.evaluate(file_.symbols);
    const c10::Storage& storage = storages_[input.storage];
    check_fits(sizes, strides, offset, c10::elementSize(input.meta.dtype), storage.nbytes());

    at::Tensor tensor = at::empty({0}, at::TensorOptions(input.meta.dtype));
    tensor.set_requires_grad(input.meta.requires_grad);
    const auto adopt = [&] {
      const c10::AutoGradMode off(false);
      tensor.set_(storage, offset, sizes, strides);
    };
    adopt();
    if (!input.is_leaf) {
      // An intermediate value of the user's program: give it a history, but keep its storage.
      const c10::AutoGradMode on(true);
      tensor = tensor.clone();
      adopt();
    }
    if (input.is_conjugate) tensor.unsafeGetTensorImpl()->_set_conj(true);
    if (input.is_negative) tensor.unsafeGetTensorImpl()->_set_neg(true);
    return c10::IValue(tensor);
  }

  void check_fits(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                  std::int64_t offset, std::size_t item, std::size_t bytes) const {
    std::int64_t last = offset;
    std::int64_t span = 0;
    bool is_empty = false;
    bool is_negative = offset < 0;
    bool overflows = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      is_negative |= sizes[i] < 0 || strides[i] < 0;
      is_empty |= sizes[i] == 0;
      overflows |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &span) ||
                   __builtin_add_overflow(last, span, &last);
    }
    if (is_negative) throw UserError(file_.source->file + ": an input has a negative size");
    if (is_empty) return;
    if (overflows || last >= static_cast<std::int64_t>(bytes / item)) {
      throw UserError(file_.source->file + ": an input reaches beyond its storage of " +
                      std::to_string(bytes) + " bytes");
    }
  }

  static Value value(const IntegerInput& input) { return c10::IValue(input.value); }
  static Value value(const ConstantInput&) { return Value(); }
  static Value value(const GeneratorInput&) {
    return c10::IValue(at::detail::createCPUGenerator());
  }
  Value value(const UnsupportedInput& input) {
    result_.notes.push_back("an input is not in the file and is None: " + input.name);
    return Value();
  }

  const ReproFile& file_;
  std::optional<std::filesystem::path> store_directory_;
  std::optional<ContentStore> store_;
  std::vector<c10::Storage> storages_;
  std::string first_missing_;
  Inputs result_;
};

}  // namespace

std::optional<std::filesystem::path> storage_directory(const ReproFile& file) {
  if (!file.save_directory) return std::nullopt;
  const std::filesystem::path beside = std::filesystem::path(file.source->file).parent_path();
  const std::filesystem::path written(*file.save_directory);
  std::error_code ignored;
  for (const auto& candidate :
       {written.is_absolute() ? written : beside / written, beside / written.filename(), beside}) {
    if (std::filesystem::is_directory(candidate / "storages", ignored)) return candidate;
  }
  return written.is_absolute() ? written : beside / written;
}

void seed_generator(std::uint64_t seed) {
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::DeviceType::CPU));
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

Inputs load_inputs(const ReproFile& file, const InputOptions& options) {
  if (file.undescribed_input) throw *file.undescribed_input;
  if (!file.process_groups.empty()) aten::simulate_process_groups(file.process_groups);
  seed_generator(options.seed);
  return InputLoader(file, options).load();
}

}  // namespace assay::repro
