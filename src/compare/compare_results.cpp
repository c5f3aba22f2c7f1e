#include "compare/compare_results.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/isclose.h>

#include "compare/memory.h"
#include "compare/scaling.h"
#include "compare/tensor_trees.h"

namespace assay::compare {

namespace {

using at::Tensor;
using aten::Value;

Value named(const graph::Graph& graph, const std::vector<Value>& values) {
  Value dict;
  dict.kind = Value::Kind::dict;
  const auto placeholders = graph.placeholders();
  for (std::size_t i = 0; i < values.size(); ++i) {
    dict.keys.push_back(placeholders[i]->name());
    dict.items.push_back(values[i]);
  }
  return dict;
}

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " integer or bool " + what + (count == 1 ? "" : "s");
}

// An input that one program changes, and the other does not.
Comparison compare_mutation(const graph::Graph& graph, const Results& reference,
                            const Results& result, const SameOptions& options) {
  const auto placeholders = graph.placeholders();
  const std::size_t count = std::min(reference.changed.size(), result.changed.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (reference.changed[i] == result.changed[i]) continue;
    const Value& input = reference.inputs[i];
    const bool is_fp = input.is_tensor() && (input.leaf.toTensor().is_floating_point() ||
                                             input.leaf.toTensor().is_complex());
    if (options.ignore_non_fp && !is_fp) continue;
    Comparison found;
    found.same = false;
    found.kind = Comparison::Kind::mutation;
    found.where = "input['" + placeholders[i]->name() + "']";
    found.message = reference.changed[i] ? "eager changes it, the compiled program does not"
                                         : "the compiled program changes it, eager does not";
    return found;
  }
  return {};
}

}  // namespace

bool is_about_numbers(const Comparison& found) {
  return !found.same &&
         (found.kind == Comparison::Kind::values || found.kind == Comparison::Kind::nan);
}

std::string describe(const NotCompared& left_out) {
  std::string text;
  if (left_out.results > 0) text = counted(left_out.results, "result");
  if (left_out.inputs > 0) {
    text += (text.empty() ? "" : " and ") + counted(left_out.inputs, "input");
  }
  if (text.empty()) return text;
  return text + (left_out.results + left_out.inputs == 1 ? " was" : " were") + " not compared";
}

bool is_identical(const Value& left, const Value& right) {
  std::vector<Tensor> tensors;
  for_each_tensor(left, [&](const Tensor& tensor) { tensors.push_back(tensor.detach()); });
  std::size_t next = 0;
  bool found = true;
  for_each_tensor(right, [&](const Tensor& tensor) {
    const Tensor& other = tensors[next++];
    if (!found || tensor.layout() != at::kStrided || tensor.is_quantized()) return;
    found = tensor.sizes() == other.sizes() && tensor.scalar_type() == other.scalar_type() &&
            at::isclose(tensor.detach(), other, 0, 0, true).all().item<bool>();
  });
  return found;
}

Comparison compare_results(const graph::Graph& graph, const Results& reference,
                           const Results& result, const Results* fp64,
                           const TwoModelsOptions& options, NotCompared* left_out) {
  const auto compare = [&](const std::string& part, auto&& get) {
    const Value judge = fp64 == nullptr ? Value() : get(*fp64);
    Comparison found =
        same(get(reference), get(result), fp64 == nullptr ? nullptr : &judge, options.same);
    if (!found.same) found.where = part + found.where;
    return found;
  };
  Comparison total;
  NotCompared skipped;
  const auto add = [&](Comparison next, std::size_t& count) {
    count += next.not_compared;
    return keep_looking(total, std::move(next));
  };
  bool go_on =
      add(compare("output", [](const Results& run) { return run.output; }), skipped.results);
  if (go_on && !options.only_forward) {
    go_on =
        add(compare("gradient", [&](const Results& run) { return named(graph, run.gradients); }),
            skipped.results);
  }
  if (go_on) {
    if (Comparison mutation = compare_mutation(graph, reference, result, options.same);
        !mutation.same) {
      total = std::move(mutation);
      go_on = false;
    }
  }
  if (go_on) {
    add(compare("input", [&](const Results& run) { return named(graph, run.inputs); }),
        skipped.inputs);
  }
  if (left_out != nullptr) *left_out = skipped;
  return total;
}

Comparison same_relatively(const Value& reference, const Value& result, const Value* fp64,
                           const SameOptions& options) {
  const std::vector<double> scales = scales_of(reference);
  const Value left = scaled(reference, scales);
  const Value right = scaled(result, scales);
  Comparison found = same(left, right, nullptr, options);
  if (!is_about_numbers(found) || fp64 == nullptr) return found;
  const Value judge = scaled(*fp64, scales);
  Comparison judged = same(left, right, &judge, options);
  return !judged.same && judged.kind == Comparison::Kind::reference ? found : judged;
}

Comparison compare_memory(const graph::Graph& graph, const Results& reference,
                          const Results& result, const TwoModelsOptions& options) {
  Comparison found;
  if (options.strides) {
    found = same_strides(reference.output, result.output);
    if (!found.same) found.where = "output" + found.where;
  }
  if (found.same && options.aliasing) {
    const Value eager_inputs = named(graph, reference.inputs);
    const Value inputs = named(graph, result.inputs);
    found = same_aliasing({reference.output, eager_inputs}, {result.output, inputs});
  }
  return found;
}

Comparison compare_both_ways(const graph::Graph& graph, const Results& one, const Results& other,
                             const Results* fp64, const TwoModelsOptions& options) {
  Comparison found = compare_results(graph, one, other, fp64, options);
  if (found.same) found = compare_results(graph, other, one, fp64, options);
  return found;
}

}  // namespace assay::compare
