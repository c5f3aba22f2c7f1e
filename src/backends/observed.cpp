// The ahead-of-time backends that watch each operator of their graphs as it runs.
#include <stdexcept>

#include "aten/runner.h"
#include "backends/aot.h"
#include "backends/backends.h"
#include "backends/mode.h"
#include "graph/annotation.h"
#include "graph/print.h"
#include "observe/observe.h"

namespace assay::backends {

namespace {

using aten::NodeObserver;
using aten::Value;
using graph::SizeExpr;
using graph::TensorMeta;
using graph::ValueMeta;

Compiler run_observed(const NodeObserver& observer) {
  return [observer](const CompileRequest& request) {
    return make_compiled_graph([graph = request.graph,
                                runner = std::make_shared<const aten::GraphRunner>(*request.graph),
                                observer](std::span<c10::IValue> inputs, Outputs& outputs) {
      runner->call(inputs, outputs, observer);
    });
  };
}

CompiledPointer compile_observed(const CompileRequest& request, const NodeObserver& observer) {
  return compile_ahead_of_time(request, {.partitioner = &autograd::partition_min_cut,
                                         .decompose = true,
                                         .compiler = run_observed(observer)});
}

// ---- mode ----

NodeObserver& mode_of_this_thread() {
  thread_local NodeObserver mode;
  return mode;
}

void log_call(const graph::Node& node, const Value& value) {
  if (!node.is_call()) return;
  observe::log(observe::Component::backends, observe::Level::debug, [&] {
    const ValueMeta meta = aten::describe(value);
    return node.name() + (meta.known() ? ": " + graph::annotation_text(meta) : "") + " = " +
           graph::print_call(node);
  });
}

// ---- crossref ----

bool differs(const SizeExpr& declared, const SizeExpr& found) {
  return declared.is_constant() && declared != found;
}

bool differ(const std::vector<SizeExpr>& declared, const std::vector<SizeExpr>& found) {
  if (declared.size() != found.size()) return true;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (differs(declared[i], found[i])) return true;
  }
  return false;
}

// Strides of dimensions with one element or none mean nothing.
bool strides_differ(const TensorMeta& declared, const TensorMeta& found) {
  for (const SizeExpr& size : found.sizes) {
    if (size.constant() == 0) return false;
  }
  for (std::size_t i = 0; i < found.sizes.size(); ++i) {
    if (found.sizes[i].constant() != 1 && differs(declared.strides[i], found.strides[i])) {
      return true;
    }
  }
  return false;
}

// What of the declared value is not so; empty if all is.
std::string difference(const ValueMeta& declared, const ValueMeta& found) {
  const TensorMeta* left = declared.tensor();
  const TensorMeta* right = found.tensor();
  if (left != nullptr && right != nullptr) {
    std::string what;
    const auto add = [&](const char* name) {
      what += (what.empty() ? "" : ", ") + std::string(name);
    };
    if (left->dtype != right->dtype) add("dtype");
    if (left->device != right->device) add("device");
    if (differ(left->sizes, right->sizes)) {
      add("sizes");
    } else if (strides_differ(*left, *right)) {
      add("strides");
    }
    return what;
  }
  const auto* several = std::get_if<std::vector<ValueMeta>>(&declared.value);
  const auto* real = std::get_if<std::vector<ValueMeta>>(&found.value);
  if (several != nullptr && real != nullptr) {
    if (several->size() != real->size()) return "number of results";
    for (std::size_t i = 0; i < several->size(); ++i) {
      const std::string what = difference((*several)[i], (*real)[i]);
      if (!what.empty()) return "result " + std::to_string(i) + ": " + what;
    }
  }
  return "";
}

void compare_with_declared(const graph::Node& node, const Value& value) {
  const ValueMeta& declared = node.meta.value;
  const ValueMeta found = aten::describe(value);
  if (!declared.known() || !found.known()) return;
  const std::string what = difference(declared, found);
  if (what.empty()) return;
  throw std::runtime_error("the value of '" + node.name() + "' is not what the graph declares (" +
                           what + "): declared " + graph::annotation_text(declared) + ", found " +
                           graph::annotation_text(found));
}

}  // namespace

ModeScope::ModeScope(NodeObserver mode)
    : saved_(std::exchange(mode_of_this_thread(), std::move(mode))) {}
ModeScope::~ModeScope() { mode_of_this_thread() = std::move(saved_); }

CompiledPointer compile_aot_eager_decomp_partition_with_mode(const CompileRequest& request) {
  const NodeObserver& mode = mode_of_this_thread();
  return compile_observed(request, mode ? mode : NodeObserver(&log_call));
}

CompiledPointer compile_aot_eager_decomp_partition_crossref(const CompileRequest& request) {
  return compile_observed(request, &compare_with_declared);
}

}  // namespace assay::backends
