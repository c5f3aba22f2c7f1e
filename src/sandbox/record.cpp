#include "sandbox/record.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>
#include <c10/util/hash.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "aten/runner.h"
#include "graph/dtype_names.h"
#include "repro/content_store.h"

namespace assay::sandbox {

namespace {

using aten::Value;
using nlohmann::json;

class ValueSaver {
 public:
  ValueSaver(const std::filesystem::path& directory, const std::string& key)
      : store_(directory), key_(key) {}

  json describe(const graph::Node& node, const Value& value) {
    // The contents of inputs are in the store already.
    name_ = node.op() == graph::Op::placeholder ? "" : key_ + " " + node.name();
    items_ = 0;
    return describe(value);
  }

 private:
  json describe(const Value& value) {
    if (value.is_tensor()) return tensor(value.leaf.toTensor());
    if (value.kind == Value::Kind::leaf && value.leaf.isTensorList()) {
      json items = json::array();
      for (const at::Tensor& item : value.leaf.toTensorVector()) items.push_back(tensor(item));
      return {{"items", std::move(items)}};
    }
    if (value.is_sequence()) {
      json items = json::array();
      for (const Value& item : value.items) items.push_back(describe(item));
      return {{"items", std::move(items)}};
    }
    return constant(value);
  }

  static json constant(const Value& value) {
    if (value.is_none()) return {{"constant", nullptr}};
    if (value.is_bool()) return {{"constant", value.leaf.toBool()}};
    if (value.is_int()) return {{"constant", value.leaf.toInt()}};
    if (value.is_float() && std::isfinite(value.leaf.toDouble())) {
      return {{"constant", value.leaf.toDouble()}};
    }
    return {{"unknown", aten::type_name(value)}};
  }

  // Only the tensor's own elements, with its strides where they leave no holes.
  json tensor(const at::Tensor& tensor) {
    const bool is_plain = tensor.defined() && tensor.layout() == at::kStrided &&
                          tensor.device().is_cpu() && !tensor.is_quantized();
    if (!is_plain) return {{"unknown", "Tensor"}};
    const c10::AutoGradMode off(false);
    at::Tensor compact = tensor.is_non_overlapping_and_dense()
                             ? at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options())
                             : at::empty(tensor.sizes(), tensor.options());
    std::string name;
    if (!name_.empty()) {
      compact.copy_(tensor);
      name = c10::sha1(name_ + " " + std::to_string(items_++)).str();
      store_.write_as(name, compact.storage());
    }
    return {{"storage", name},
            {"bytes", compact.storage().nbytes()},
            {"dtype", graph::dtype_name(tensor.scalar_type())},
            {"size", tensor.sizes().vec()},
            {"stride", compact.strides().vec()},
            {"offset", 0},
            {"requires_grad", tensor.requires_grad()}};
  }

  repro::ContentStore store_;
  const std::string& key_;
  std::string name_;  // of the node being described; empty: only describe it
  int items_ = 0;
};

}  // namespace

void record_values(const graph::Graph& graph, std::vector<Value> inputs,
                   const std::filesystem::path& save_directory, const std::string& key,
                   const graph::python::Source* source,
                   const std::function<void(json values)>& report) {
  ValueSaver recorder(save_directory, key);
  json values = json::object();
  const aten::GraphRunner runner(graph, source);
  const auto note = [&](const graph::Node& node, const Value& value) {
    // Nodes of subgraphs are seen too, and may have the same names.
    if (graph.find(node.name()) == &node) values[node.name()] = recorder.describe(node, value);
  };
  try {
    runner.run(std::move(inputs), note);
  } catch (const aten::OperatorError&) {
    report(std::move(values));
    throw;
  }
  report(std::move(values));
}

}  // namespace assay::sandbox
