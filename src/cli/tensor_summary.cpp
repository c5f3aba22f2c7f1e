#include "cli/tensor_summary.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "aten/call.h"
#include "aten/runner.h"
#include "cli/terminal.h"
#include "graph/annotation.h"
#include "graph/python_strings.h"

namespace assay::cli {

namespace {

// The elements as doubles, in order; complex numbers by their magnitude.
at::Tensor as_doubles(const at::Tensor& tensor) {
  using aten::Value;
  const c10::AutoGradMode off(false);
  c10::IValue current = tensor;
  if (tensor.is_complex()) {
    current = aten::call("aten::abs", {{Value(current)}, {}}).leaf;
  }
  current = aten::call("aten::to",
                       {{Value(current), Value(Value::Kind::dtype,
                                               static_cast<std::int64_t>(c10::ScalarType::Double))},
                        {}},
                       aten::Dialect::method)
                .leaf;
  return aten::call("aten::contiguous", {{Value(current)}, {}}, aten::Dialect::method)
      .leaf.toTensor();
}

void measure(const at::Tensor& tensor, OutputSummary& into) {
  into.elements = tensor.numel();
  if (into.elements == 0 || tensor.layout() != c10::kStrided) return;
  const at::Tensor doubles = as_doubles(tensor);
  const double* data = doubles.const_data_ptr<double>();
  double sum = 0;
  std::int64_t finite = 0;
  into.smallest = std::numeric_limits<double>::infinity();
  into.largest = -into.smallest;
  for (std::int64_t i = 0; i < into.elements; ++i) {
    if (std::isnan(data[i])) {
      ++into.nans;
    } else if (std::isinf(data[i])) {
      ++into.infinities;
    } else {
      sum += data[i];
      ++finite;
      into.smallest = std::min(into.smallest, data[i]);
      into.largest = std::max(into.largest, data[i]);
    }
  }
  into.mean = finite > 0 ? sum / static_cast<double>(finite) : std::nan("");
}

void collect(const aten::Value& value, const std::string& name, std::vector<OutputSummary>& into) {
  if (value.is_sequence() || (value.is_leaf() && value.leaf.isList())) {
    const auto items = aten::unpack(value);
    for (std::size_t i = 0; i < items.size(); ++i) {
      collect(items[i], (name.empty() ? "" : name + ".") + std::to_string(i), into);
    }
    return;
  }
  if (value.kind == aten::Value::Kind::dict) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      collect(value.items[i], (name.empty() ? "" : name + ".") + value.keys[i], into);
    }
    return;
  }
  OutputSummary& summary = into.emplace_back();
  summary.name = name.empty() ? "0" : name;
  summary.type = aten::type_name(value);
  if (value.is_tensor()) {
    const at::Tensor& tensor = value.leaf.toTensor();
    summary.is_tensor = tensor.defined();
    summary.type = tensor.defined() ? graph::annotation_text(aten::describe(value)) : "undefined";
    if (tensor.defined()) measure(tensor, summary);
  } else if (value.is_int()) {
    summary.text = std::to_string(value.leaf.toInt());
  } else if (value.is_float()) {
    summary.text = graph::python::float_text(value.leaf.toDouble());
  } else if (value.is_bool()) {
    summary.text = value.leaf.toBool() ? "True" : "False";
  }
}

std::string short_number(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.6g", value);
  return buffer.data();
}

}  // namespace

std::vector<OutputSummary> summarize(const aten::Value& results) {
  std::vector<OutputSummary> outputs;
  collect(results, "", outputs);
  return outputs;
}

std::string as_table(const std::vector<OutputSummary>& outputs) {
  std::vector<std::vector<std::string>> rows = {{"output", "type", "mean", "min", "max", ""}};
  for (const OutputSummary& output : outputs) {
    if (!output.is_tensor || output.elements == 0) {
      rows.push_back({output.name, output.type, output.text});
      continue;
    }
    std::string warning;
    if (output.nans > 0) warning = std::to_string(output.nans) + " nan ";
    if (output.infinities > 0) warning += std::to_string(output.infinities) + " inf";
    const bool has_finite = output.nans + output.infinities < output.elements;
    const auto shown = [&](double value) { return has_finite ? short_number(value) : "-"; };
    rows.push_back({output.name, output.type, shown(output.mean), shown(output.smallest),
                    shown(output.largest), warning});
  }
  return table(rows, {2, 3, 4});
}

nlohmann::json as_json(const std::vector<OutputSummary>& outputs) {
  auto list = nlohmann::json::array();
  for (const OutputSummary& output : outputs) {
    nlohmann::json entry = {{"name", output.name}, {"type", output.type}};
    if (output.is_tensor) {
      // Infinities and NaNs have no spelling in JSON; without finite elements there is no mean.
      const bool has_finite = output.nans + output.infinities < output.elements;
      entry["elements"] = output.elements;
      entry["nan"] = output.nans;
      entry["inf"] = output.infinities;
      entry["mean"] = has_finite ? nlohmann::json(output.mean) : nlohmann::json();
      entry["min"] = has_finite ? nlohmann::json(output.smallest) : nlohmann::json();
      entry["max"] = has_finite ? nlohmann::json(output.largest) : nlohmann::json();
    } else if (!output.text.empty()) {
      entry["value"] = output.text;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace assay::cli
