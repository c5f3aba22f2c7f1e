#include "compare/models.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <map>
#include <memory>
#include <mutex>

#include "assay/error.h"
#include "aten/failure.h"
#include "aten/input_copies.h"
#include "aten/rng_state.h"
#include "aten/runner.h"
#include "compare/compare_results.h"
#include "compare/fp64.h"
#include "compare/memory.h"
#include "compare/tensor_trees.h"

namespace assay::compare {

namespace {

using at::Tensor;
using aten::Value;

// Starts every run from one state of the default generator, and leaves it as it was.
class SameRandomNumbers {
 public:
  explicit SameRandomNumbers(std::optional<std::uint64_t> seed) : seed_(seed) {
    const std::lock_guard lock(generator_.mutex());
    state_ = generator_.get_state();
  }

  void start() {
    const std::lock_guard lock(generator_.mutex());
    if (seed_) {
      generator_.set_current_seed(*seed_);
    } else {
      generator_.set_state(state_);
    }
  }

 private:
  aten::RestoreGeneratorScope keep_;
  at::Generator generator_ = at::detail::getDefaultCPUGenerator();
  std::optional<std::uint64_t> seed_;
  Tensor state_;
};

// Catches the gradients of inputs that are no leaves. Not by retain_grad(), which follows a tensor
// that is changed in place to its new value.
class GradientsOfInputs {
 public:
  explicit GradientsOfInputs(const std::vector<Value>& inputs) {
    for (const Value& input : inputs) {
      for_each_tensor(input, [this](const Tensor& tensor) {
        if (!tensor.requires_grad() || tensor.is_leaf()) return;
        auto& caught = caught_[tensor.unsafeGetTensorImpl()];
        if (caught != nullptr) return;
        caught = std::make_shared<Tensor>();
        tensor.register_hook([caught](const Tensor& gradient) {
          *caught = caught->defined() ? caught->add(gradient) : gradient;
        });
      });
    }
  }

  void put_into(Results& results) const {
    for (std::size_t i = 0; i < results.inputs.size(); ++i) {
      if (!results.inputs[i].is_tensor()) continue;
      const Tensor& input = results.inputs[i].leaf.toTensor();
      const auto found = caught_.find(input.unsafeGetTensorImpl());
      if (found == caught_.end()) continue;
      const Tensor& gradient = *found->second;
      results.gradients[i] =
          c10::IValue(gradient.defined() ? gradient : at::zeros_like(input.detach()));
    }
  }

 private:
  std::map<const c10::TensorImpl*, std::shared_ptr<Tensor>> caught_;
};

Results run_graph(const graph::Graph& graph, const std::vector<Value>& inputs, bool only_forward,
                  SameRandomNumbers& random) {
  random.start();
  const aten::GraphRunner runner(graph);
  random.start();
  return run_fwd_maybe_bwd([&](std::vector<Value> values) { return runner.run(std::move(values)); },
                           inputs, only_forward);
}

// What the second of two calls gives. Only attributes can tell it from the first.
Results run_graph_twice(const graph::Graph& graph, const std::vector<Value>& inputs,
                        bool only_forward, SameRandomNumbers& random) {
  random.start();
  const aten::GraphRunner runner(graph);
  const auto run = [&](std::vector<Value> values) { return runner.run(std::move(values)); };
  random.start();
  (void)run_fwd_maybe_bwd(run, inputs, only_forward);
  random.start();
  return run_fwd_maybe_bwd(run, inputs, only_forward);
}

Results run_in_fp64(const graph::Graph& graph, const std::vector<Value>& inputs, bool only_forward,
                    SameRandomNumbers& random) {
  const Fp64Program program = cast_to_fp64(graph, inputs);
  return run_graph(*program.graph, program.inputs, only_forward, random);
}

// Runs something that may fail for reasons of the program; the reason, or nothing.
std::string error_of(const std::function<void()>& run) {
  try {
    run();
    return {};
  } catch (const InternalError&) {
    throw;
  } catch (...) {
    return aten::describe_exception().text;
  }
}

std::string not_repeatable(const Comparison& runs) {
  return "not repeatable: two eager runs differ in " + runs.where + ": " + runs.message;
}

// Calls the compiled program once more. What it raises only now is a difference too.
Comparison compare_second_call(const graph::Graph& graph, const Callable& compiled,
                               const std::vector<Value>& inputs, const Results& first,
                               const TwoModelsOptions& options, SameRandomNumbers& random) {
  const bool has_state = !graph.attributes().empty();
  const Results eager =
      has_state ? run_graph_twice(graph, inputs, options.only_forward, random) : first;
  Comparison found;
  Results result;
  random.start();
  const std::string error =
      error_of([&] { result = run_fwd_maybe_bwd(compiled, inputs, options.only_forward); });
  if (error.empty()) {
    found = compare_results(graph, eager, result, nullptr, options);
    Results fp64;
    const bool has_fp64 =
        options.use_fp64 && is_about_numbers(found) &&
        error_of([&] { fp64 = run_in_fp64(graph, inputs, options.only_forward, random); }).empty();
    if (has_fp64) found = compare_results(graph, eager, result, &fp64, options);
  } else {
    found.same = false;
    found.message = "it raises " + error;
  }
  if (found.same) return {};
  found.kind = Comparison::Kind::second_call;
  found.message = "on the second call: " + found.message;
  return found;
}

}  // namespace

std::vector<Value> clone_inputs_retaining_gradness(const std::vector<Value>& inputs) {
  std::vector<Value> tensors;
  for (const Value& input : inputs) {
    for_each_tensor(input,
                    [&](const Tensor& tensor) { tensors.emplace_back(c10::IValue(tensor)); });
  }
  const std::vector<Value> copies = aten::copy_inputs(tensors);
  std::size_t next = 0;
  std::vector<Value> made;
  made.reserve(inputs.size());
  for (const Value& input : inputs) {
    made.push_back(
        map_tensors(input, [&](const Tensor&) { return copies[next++].leaf.toTensor(); }));
  }
  return made;
}

bool requires_bwd_pass(const Value& value) {
  bool found = false;
  for_each_tensor(value, [&](const Tensor& tensor) { found = found || tensor.requires_grad(); });
  return found;
}

Tensor reduce_to_scalar_loss(const Value& value) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.leaf.toTensor();
    if (!tensor.defined()) return {};
    const Tensor numbers = tensor.is_complex() ? at::view_as_real(tensor) : tensor;
    // An empty tensor has no mean, but that must not make the whole loss NaN.
    return numbers.sum().div(std::max<std::int64_t>(tensor.numel(), 1));
  }
  const bool is_list = value.is_leaf() && (value.leaf.isList() || value.leaf.isTuple());
  const std::vector<Value> items = is_list ? aten::unpack(value) : value.items;
  Tensor sum;
  for (const Value& item : items) {
    const Tensor part = reduce_to_scalar_loss(item);
    if (part.defined()) sum = sum.defined() ? at::add(sum, part) : part;
  }
  if (!sum.defined()) return {};
  return sum.div(static_cast<std::int64_t>(items.size()));
}

Results collect_results(Value output, std::vector<Value> inputs) {
  Results results;
  results.output = std::move(output);
  for (const Value& input : inputs) {
    results.gradients.push_back(map_tensors(input, [](const Tensor& tensor) {
      if (!tensor.requires_grad()) return Tensor();
      const Tensor& gradient = tensor.grad();
      return gradient.defined() ? gradient : at::zeros_like(tensor.detach());
    }));
  }
  results.inputs = std::move(inputs);
  return results;
}

Results run_fwd_maybe_bwd(const Callable& program, const std::vector<Value>& inputs,
                          bool only_forward) {
  std::vector<Value> copies = clone_inputs_retaining_gradness(inputs);
  const GradientsOfInputs gradients(copies);
  Value output = program(copies);
  if (!only_forward && requires_bwd_pass(output)) reduce_to_scalar_loss(output).backward();
  Results results = collect_results(std::move(output), std::move(copies));
  gradients.put_into(results);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    results.changed.push_back(!is_identical(inputs[i], results.inputs[i]));
  }
  return results;
}

TwoModels same_two_models(const graph::Graph& graph, const Callable& compiled,
                          const std::vector<Value>& inputs, const TwoModelsOptions& options,
                          const Results* eager) {
  TwoModels found;
  SameRandomNumbers random(options.seed);
  Results reference;
  const auto run_eagerly = [&] { return run_graph(graph, inputs, options.only_forward, random); };
  if (eager != nullptr) {
    reference = *eager;
  } else {
    found.eager_error = error_of([&] { reference = run_eagerly(); });
  }
  found.eager_failed = !found.eager_error.empty();
  if (found.eager_failed) return found;

  random.start();
  const Results result = run_fwd_maybe_bwd(compiled, inputs, options.only_forward);
  NotCompared left_out;
  found.comparison = compare_results(graph, reference, result, nullptr, options, &left_out);
  // What is close needs no judge, and most programs are close.
  Results fp64;
  if (options.require_fp64 || (options.use_fp64 && is_about_numbers(found.comparison))) {
    found.fp64_error =
        error_of([&] { fp64 = run_in_fp64(graph, inputs, options.only_forward, random); });
    found.has_fp64_reference = found.fp64_error.empty();
  }
  const Results* judge = found.has_fp64_reference ? &fp64 : nullptr;
  if (judge != nullptr) {
    found.comparison = compare_results(graph, reference, result, judge, options, &left_out);
  } else if (options.require_fp64) {
    throw UserError("the float64 reference cannot be computed: " + found.fp64_error,
                    "compare without it (require_fp64 off)");
  }
  found.not_compared = describe(left_out);
  if (found.comparison.same) {
    Comparison memory = compare_memory(graph, reference, result, options);
    if (!memory.same) found.comparison = std::move(memory);
  }
  if (found.comparison.same && options.second_call) {
    Comparison second = compare_second_call(graph, compiled, inputs, reference, options, random);
    if (!second.same) found.comparison = std::move(second);
  }
  if (found.comparison.same) return found;
  // A program that gives other numbers each time proves nothing about a compiler.
  const Results again = run_eagerly();
  const Comparison repeated = compare_both_ways(graph, reference, again, judge, options);
  if (!repeated.same) {
    found.eager_failed = true;
    found.eager_error = not_repeatable(repeated);
  }
  return found;
}

std::vector<Comparison> all_differences(const graph::Graph& graph, const Callable& compiled,
                                        const std::vector<Value>& inputs,
                                        const TwoModelsOptions& options) {
  SameRandomNumbers random(options.seed);
  const auto run_eagerly = [&] { return run_graph(graph, inputs, options.only_forward, random); };
  const Results eager = run_eagerly();
  const Results again = run_eagerly();
  random.start();
  const Results result = run_fwd_maybe_bwd(compiled, inputs, options.only_forward);
  Results fp64;
  const bool has_fp64 =
      error_of([&] { fp64 = run_in_fp64(graph, inputs, options.only_forward, random); }).empty();
  std::vector<Comparison> differences;
  const auto compare = [&](const std::string& where, auto&& get) {
    const Value reference = get(eager);
    const Value judge = has_fp64 ? get(fp64) : Value();
    const auto to = [&](const Value& other) {
      return same_relatively(reference, other, has_fp64 ? &judge : nullptr, options.same);
    };
    Comparison found = to(get(result));
    if (found.same && options.strides) found = same_strides(reference, get(result));
    if (found.same || !to(get(again)).same) return;
    found.where = where + found.where;
    differences.push_back(std::move(found));
  };
  const std::size_t count = aten::unpack(eager.output).size();
  for (std::size_t i = 0; i < count; ++i) {
    compare("output[" + std::to_string(i) + "]", [&](const Results& run) {
      const std::vector<Value> items = aten::unpack(run.output);
      return i < items.size() ? items[i] : Value();
    });
  }
  const auto placeholders = graph.placeholders();
  for (std::size_t i = 0; !options.only_forward && i < placeholders.size(); ++i) {
    compare("gradient['" + placeholders[i]->name() + "']",
            [&](const Results& run) { return run.gradients[i]; });
  }
  return differences;
}

std::string why_not_repeatable(const graph::Graph& graph, const Results& eager,
                               const std::vector<Value>& inputs, const TwoModelsOptions& options) {
  SameRandomNumbers random(options.seed);
  const Results again = run_graph(graph, inputs, options.only_forward, random);
  Comparison found = compare_both_ways(graph, eager, again, nullptr, options);
  if (options.use_fp64 && is_about_numbers(found)) {
    Results fp64;
    const std::string error =
        error_of([&] { fp64 = run_in_fp64(graph, inputs, options.only_forward, random); });
    if (error.empty()) found = compare_both_ways(graph, eager, again, &fp64, options);
  }
  return found.same ? "" : not_repeatable(found);
}

}  // namespace assay::compare
