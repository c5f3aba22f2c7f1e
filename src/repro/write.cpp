#include "repro/write.h"

#include <map>

#include "assay/error.h"
#include "assay/version.h"
#include "graph/dtype_names.h"
#include "graph/python_strings.h"
#include "repro/bundle.h"
#include "repro/process_groups.h"

namespace assay::repro {

namespace {

using graph::python::quote;

std::string size_tuple(const std::vector<graph::SizeExpr>& sizes) {
  std::string text = "(";
  for (const auto& size : sizes) text += size.str() + ", ";
  if (sizes.size() == 1) return text.substr(0, text.size() - 1) + ")";
  if (!sizes.empty()) text.resize(text.size() - 2);
  return text + ")";
}

class FileWriter {
 public:
  FileWriter(const ReproFile& file, const graph::PrintOptions& options)
      : file_(file), options_(options) {}

  std::string run() {
    for (const auto& [name, value] : file_.symbols) {
      out_ += name + " = " + std::to_string(value) + "\n";
    }
    if (!file_.environment.empty() || is_beside_file()) out_ += "import os\n";
    for (const Setting& setting : file_.environment) {
      out_ += "os.environ[" + quote(setting.name) + "] = " + setting.value + "\n";
    }
    out_ +=
        "import operator\n"
        "import math\n"
        "import torch\n"
        "from torch import tensor, device\n"
        "from math import inf, nan\n"
        "from torch.nn import *\n"
        "import torch._dynamo.config\n"
        "import torch._inductor.config\n"
        "import torch._functorch.config\n"
        "import torch.fx.experimental._config\n"
        "import torch._inductor.inductor_prims\n";
    for (const Setting& setting : file_.config) {
      out_ += setting.name + " = " + setting.value + "\n";
    }
    out_ += "\n";
    if (!file_.stable_output) out_ += "# assay version: " + std::string(version) + "\n";
    if (file_.stage != Stage::after_dynamo && !file_.backend.empty()) {
      out_ += "# assay backend: " + file_.backend + "\n";
    }
    out_ += file_.header + "\n\n";
    if (!file_.inlined_storages.empty()) out_ += print_inlined_storages(file_.inlined_storages);
    out_ += graph::print(*file_.graph, options_) + "\n\n";
    load_args();
    out_ += "\n\nmod = " + file_.graph->name() + "()\n\n";
    main_block();
    return std::move(out_);
  }

 private:
  void load_args() {
    out_ += "def load_args(reader):\n";
    const auto placeholders = std::as_const(*file_.graph).placeholders();
    std::map<std::size_t, std::size_t> numbers;  // of the storages in use, as they are written
    for (std::size_t i = 0; i < file_.inputs.size(); ++i) {
      Input input = file_.inputs[i];
      if (auto* tensor = std::get_if<TensorInput>(&input)) {
        const auto [number, is_new] = numbers.try_emplace(tensor->storage, numbers.size());
        if (is_new) storage_line(file_.storages[tensor->storage], number->second);
        tensor->storage = number->second;
      }
      out_ += "    " + std::visit([](const auto& written) { return line(written); }, input);
      out_ += "  # " + placeholders[i]->name() + "\n";
    }
    if (file_.inputs.empty()) out_ += "    pass\n";
    out_ += "load_args._version = 0\n";
  }

  void storage_line(const StorageSpec& spec, std::size_t number) {
    out_ += "    buf" + std::to_string(number) + " = reader.storage(" +
            (spec.hash.empty() ? "None" : quote(spec.hash)) + ", " + spec.bytes.str();
    if (!spec.device.is_cpu()) out_ += ", device=" + graph::print(graph::Argument(spec.device));
    if (spec.dtype_hint != c10::ScalarType::Float) {
      out_ += ", dtype_hint=torch." + std::string(graph::dtype_name(spec.dtype_hint));
    }
    out_ += ")\n";
  }

  static std::string line(const TensorInput& input) {
    std::string text =
        "reader.tensor(buf" + std::to_string(input.storage) + ", " + size_tuple(input.meta.sizes);
    if (!(input.meta.strides == graph::contiguous_strides(input.meta.sizes))) {
      text += ", " + size_tuple(input.meta.strides);
    }
    if (input.meta.dtype != c10::ScalarType::Float) {
      text += ", dtype=torch." + std::string(graph::dtype_name(input.meta.dtype));
    }
    if (!(input.storage_offset == graph::SizeExpr(0))) {
      text += ", storage_offset=" + input.storage_offset.str();
    }
    if (input.is_conjugate) text += ", conj=True";
    if (input.is_negative) text += ", neg=True";
    if (input.meta.requires_grad) text += ", requires_grad=True";
    return text + (input.is_leaf ? ", is_leaf=True)" : ", is_leaf=False)");
  }
  static std::string line(const IntegerInput& input) {
    const std::string value = std::to_string(input.value);
    if (input.expression.empty()) return "reader.symint(" + value + ")";
    return "reader.symint(" + value + ", expr=" + quote(input.expression) + ")";
  }
  static std::string line(const ConstantInput& input) {
    return "reader.const(" + quote(input.name) + ")";
  }
  static std::string line(const UnsupportedInput& input) {
    return "reader.unsupported(" + quote(input.name) + ")";
  }

  static std::string line(const GeneratorInput&) { return "reader.generator('cpu', 0)"; }

  // Stock takes a relative directory to be in the current one; a file should work from anywhere.
  bool is_beside_file() const {
    return file_.save_directory && file_.inlined_storages.empty() &&
           std::filesystem::path(*file_.save_directory).is_relative();
  }
  std::string save_directory() const {
    if (!file_.inlined_storages.empty()) return std::string(kUnpackCall);
    if (!file_.save_directory) return "None";
    if (!is_beside_file()) return quote(*file_.save_directory);
    std::string beside = "os.path.dirname(os.path.abspath(__file__))";
    if (*file_.save_directory == ".") return beside;
    return "os.path.join(" + beside + ", " + quote(*file_.save_directory) + ")";
  }

  void main_block() {
    out_ += "if __name__ == '__main__':\n";
    if (!file_.process_groups.empty()) {
      out_ +=
          "    from torch._dynamo.repro.after_aot import setup_fake_process_groups\n"
          "    setup_fake_process_groups(" +
          print_process_groups(file_.process_groups) + ")\n";
    }
    call_run_repro();
    if (!file_.process_groups.empty()) out_ += "    torch.distributed.destroy_process_group()\n";
  }

  void call_run_repro() {
    const std::string directory = save_directory();
    if (file_.stage == Stage::after_dynamo) {
      out_ +=
          "    from torch._dynamo.repro.after_dynamo import run_repro\n"
          "    run_repro(mod, load_args, accuracy=" +
          file_.accuracy + ", command=" + quote(file_.command) +
          ",\n        save_dir=" + directory + ", autocast=" + (file_.autocast ? "True" : "False") +
          ", backend=" + (file_.backend.empty() ? "None" : quote(file_.backend)) + ")\n";
      return;
    }
    const auto call = [&](const std::string& command) {
      return "run_repro(mod, load_args, accuracy=" + file_.accuracy +
             ", command=" + quote(command) + ", save_dir=" + directory +
             ", tracing_mode=" + quote(file_.tracing_mode) +
             ", check_str=" + (file_.check_string.empty() ? "None" : quote(file_.check_string)) +
             ")\n";
    };
    out_ +=
        "    from torch._dynamo.repro.after_aot import run_repro\n"
        "    with torch.no_grad():\n"
        "        " +
        call(file_.command) +
        "        # To run it separately, do \n"
        "        # mod, args = " +
        call("get_args") + "        # mod(*args)\n";
  }

  const ReproFile& file_;
  const graph::PrintOptions& options_;
  std::string out_;
};

}  // namespace

std::string print_repro_file(const ReproFile& file, const graph::PrintOptions& options) {
  return FileWriter(file, options).run();
}

StorageSpec describe_storage(const at::Tensor& tensor) {
  StorageSpec spec;
  spec.bytes = static_cast<std::int64_t>(tensor.storage().nbytes());
  spec.device = tensor.device();
  spec.dtype_hint = tensor.scalar_type();
  return spec;
}

TensorInput describe_input(const at::Tensor& tensor, std::size_t storage) {
  TensorInput input;
  input.storage = storage;
  input.meta.dtype = tensor.scalar_type();
  input.meta.device = tensor.device();
  input.meta.requires_grad = tensor.requires_grad();
  input.is_leaf = tensor.is_leaf();
  input.is_conjugate = tensor.is_conj();
  input.is_negative = tensor.is_neg();
  for (std::int64_t size : tensor.sizes()) input.meta.sizes.emplace_back(size);
  for (std::int64_t stride : tensor.strides()) input.meta.strides.emplace_back(stride);
  input.storage_offset = tensor.storage_offset();
  return input;
}

void add_tensor_inputs(ReproFile& file, const std::vector<at::Tensor>& tensors,
                       ContentStore* store) {
  std::map<const c10::StorageImpl*, std::size_t> known;
  for (const at::Tensor& tensor : tensors) {
    const c10::Storage& storage = tensor.storage();
    auto [found, is_new] = known.try_emplace(storage.unsafeGetStorageImpl(), file.storages.size());
    if (is_new) {
      StorageSpec spec = describe_storage(tensor);
      if (store != nullptr) spec.hash = store->write(storage);
      file.storages.push_back(std::move(spec));
    }
    file.inputs.emplace_back(describe_input(tensor, found->second));
  }
}

}  // namespace assay::repro
