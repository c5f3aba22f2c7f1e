#include "repro/header.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <thread>

#include "assay/version.h"
#include "base/environment.h"
#include "graph/annotation.h"
#include "graph/dtype_names.h"
#include "graph/python_strings.h"

namespace assay::repro {

namespace {

std::string line(const std::string& name, const std::string& value) {
  return "# " + name + ": " + value + "\n";
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  while (std::getline(file, text)) {
    const std::size_t colon = text.find(": ");
    if (text.starts_with("model name") && colon != std::string::npos) return text.substr(colon + 2);
  }
  return "unknown processor";
}

// What changes results and is not as PyTorch starts.
std::vector<std::string> changed_settings() {
  std::vector<std::string> changed;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (at::get_num_threads() != cores) {
    changed.push_back("threads " + std::to_string(at::get_num_threads()));
  }
  const auto dtype = c10::get_default_dtype_as_scalartype();
  if (dtype != c10::ScalarType::Float) {
    changed.push_back("default dtype " + std::string(graph::dtype_name(dtype)));
  }
  const at::Context& context = at::globalContext();
  if (context.deterministicAlgorithms()) changed.emplace_back("deterministic algorithms");
  if (!context.userEnabledMkldnn()) changed.emplace_back("mkldnn off");
  if (context.float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST) {
    changed.emplace_back("lower float32 matmul precision");
  }
  return changed;
}

std::vector<std::string> variables() {
  constexpr std::array kPrefixes = {"ASSAY_", "TORCH_", "TORCHDYNAMO_", "TORCHINDUCTOR_"};
  std::vector<std::string> found;
  for (const base::Variable& variable : base::environment()) {
    if (std::ranges::any_of(
            kPrefixes, [&](const char* prefix) { return variable.name.starts_with(prefix); })) {
      found.push_back(variable.name + " = " + graph::python::quote(variable.value));
    }
  }
  std::ranges::sort(found);
  return found;
}

std::string number(double value) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string range_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return "empty";
  if (tensor.is_complex()) return "complex";
  const at::Tensor values = tensor.to(at::kDouble);
  const at::Tensor finite = values.index({at::isfinite(values)});
  std::string text = "no finite values";
  if (finite.numel() != 0) {
    text = number(finite.min().item<double>()) + " to " + number(finite.max().item<double>()) +
           ", mean " + number(finite.mean().item<double>());
  }
  const std::int64_t others = values.numel() - finite.numel();
  return others == 0 ? text : text + ", " + std::to_string(others) + " not finite";
}

std::vector<std::int64_t> constants(const std::vector<graph::SizeExpr>& sizes) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(sizes.size());
  for (const graph::SizeExpr& size : sizes) numbers.push_back(size.evaluate({}));
  return numbers;
}

}  // namespace

std::string describe_environment() {
  std::string text = line("torch version", std::string(torch_version));
  text += line("hardware",
               processor() + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores");
  auto generator = at::globalContext().defaultGenerator(c10::Device(c10::DeviceType::CPU));
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    text += line("seed", std::to_string(generator.current_seed()));
  }
  for (const std::string& setting : changed_settings()) text += line("setting", setting);
  for (const std::string& variable : variables()) text += line("environment", variable);
  return text;
}

std::string describe_values(const graph::Graph& graph, const Snapshot& snapshot) {
  const c10::AutoGradMode no_grad(false);
  std::string text;
  const auto placeholders = graph.placeholders();
  for (std::size_t i = 0; i < snapshot.inputs.size(); ++i) {
    const auto* input = std::get_if<TensorInput>(&snapshot.inputs[i]);
    if (input == nullptr || !snapshot.contents[input->storage]) continue;
    at::Tensor tensor = at::empty({0}, at::TensorOptions(input->meta.dtype));
    tensor.set_(snapshot.contents[input->storage], input->storage_offset.evaluate({}),
                constants(input->meta.sizes), constants(input->meta.strides));
    graph::ValueMeta meta;
    meta.value = input->meta;
    text += line("input " + placeholders[i]->name(),
                 graph::annotation_text(meta) + ", " + range_of(tensor));
  }
  return text;
}

bool is_header_comment(std::string_view comment) {
  constexpr std::array kNames = {"torch ",        "hardware: ", "seed: ",    "setting: ",
                                 "environment: ", "input ",     "failure: ", "graph: "};
  return std::ranges::any_of(kNames, [&](const char* name) { return comment.starts_with(name); });
}

}  // namespace assay::repro
