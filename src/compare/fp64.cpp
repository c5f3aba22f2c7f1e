#include "compare/fp64.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "aten/facts.h"
#include "aten/operator_record.h"
#include "compare/models.h"
#include "compare/tensor_trees.h"

namespace assay::compare {

namespace {

using at::Tensor;
using aten::Value;
using graph::Argument;
using graph::Graph;
using graph::Node;

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

c10::ScalarType widened(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Float:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
      return c10::ScalarType::Double;
    case c10::ScalarType::ComplexHalf:
    case c10::ScalarType::ComplexFloat:
      return c10::ScalarType::ComplexDouble;
    default:
      return dtype;
  }
}

// Takes a dtype that is not the dtype of its result: the same bits under another dtype, or a mode
// that leaves float64 alone.
bool keeps_its_dtypes(const Node& node) {
  return node.target().base_name() == "view" ||
         node.target().name().find("autocast") != std::string::npos;
}

const Argument* keyword(const Node& node, std::string_view name) {
  const auto found =
      std::ranges::find(node.kwargs(), name, [](const auto& kwarg) { return kwarg.name; });
  return found == node.kwargs().end() ? nullptr : &found->value;
}

Argument cast_dtypes(const Argument& argument) {
  if (const auto* dtype = argument.get_if<c10::ScalarType>()) return widened(*dtype);
  const auto cast_items = [](auto container) {
    for (Argument& item : container.items) item = cast_dtypes(item);
    return Argument(std::move(container));
  };
  if (const auto* list = argument.get_if<graph::List>()) return cast_items(*list);
  if (const auto* tuple = argument.get_if<graph::Tuple>()) return cast_items(*tuple);
  return argument;
}

class Cast {
 public:
  explicit Cast(const Graph& original) : graph_(original.clone()) {}

  std::unique_ptr<Graph> run() {
    std::vector<Node*> nodes;
    for (Node& node : graph_->nodes()) nodes.push_back(&node);
    for (Node* node : nodes) cast(*node);
    for (graph::Attribute& attribute : graph_->attributes()) {
      auto* subgraph = std::get_if<std::shared_ptr<const Graph>>(&attribute.value);
      if (subgraph != nullptr && *subgraph != nullptr) *subgraph = Cast(**subgraph).run();
    }
    return std::move(graph_);
  }

 private:
  void cast(Node& node) {
    if (node.op() == graph::Op::get_attr) {
      cast_attribute(node);
    } else if (node.op() == graph::Op::call_method &&
               is_one_of(node.target().name(), {"float", "half", "bfloat16"})) {
      node.set_target("double");
    } else if (aten::operator_record(node).draws_floats) {
      cast_random(node);
    } else if (node.is_call() && !keeps_its_dtypes(node)) {
      cast_arguments(node);
    }
  }

  // An attribute may be random as well.
  void cast_attribute(Node& node) {
    const graph::Attribute* attribute = graph_->attribute(node.target().name());
    if (attribute == nullptr) return;
    const auto* tensor = std::get_if<graph::TensorAttribute>(&attribute->value);
    if (tensor != nullptr && widened(tensor->meta.dtype) != tensor->meta.dtype) {
      convert_result(node, widened(tensor->meta.dtype));
    }
  }

  void cast_random(Node& node) {
    c10::ScalarType dtype = c10::ScalarType::Float;
    const graph::TensorMeta* meta = node.meta.value.tensor();
    if (meta != nullptr) dtype = meta->dtype;
    const Argument* wanted = keyword(node, "dtype");
    if (wanted != nullptr && wanted->get_if<c10::ScalarType>() != nullptr) {
      dtype = *wanted->get_if<c10::ScalarType>();
    } else if (wanted == nullptr && node.target().base_name() != "normal") {
      add_keyword(node, dtype);
    }
    convert_result(node, widened(dtype));
  }

  void cast_arguments(Node& node) {
    std::vector<Argument> args;
    std::vector<graph::NamedArgument> kwargs;
    for (const Argument& argument : node.args()) args.push_back(cast_dtypes(argument));
    for (const auto& argument : node.kwargs()) {
      kwargs.push_back({argument.name, cast_dtypes(argument.value)});
    }
    node.set_arguments(std::move(args), std::move(kwargs));
    if (aten::operator_record(node).is_float_factory && keyword(node, "dtype") == nullptr &&
        keyword(node, "out") == nullptr) {
      add_keyword(node, c10::ScalarType::Double);
    }
  }

  static void add_keyword(Node& node, c10::ScalarType dtype) {
    std::vector<graph::NamedArgument> kwargs = node.kwargs();
    kwargs.push_back({"dtype", dtype});
    node.set_arguments(node.args(), std::move(kwargs));
  }

  void convert_result(Node& node, c10::ScalarType dtype) {
    const auto position = std::ranges::find_if(
        graph_->nodes(), [&](const Node& candidate) { return &candidate == &node; });
    const Graph::InsertBefore before(*graph_, *std::next(position));
    Node& converted = graph_->call_function("torch.ops.aten.to.dtype", {}, {}, node.name());
    node.replace_all_uses_with(converted);
    converted.set_arguments({&node, dtype});
  }

  std::unique_ptr<Graph> graph_;
};

const graph::RegisterPass fp64_pass({.name = "fp64",
                                     .room = "compare",
                                     .description = "copies a program and casts it to float64",
                                     .is_required = true});

// Tensors that share memory share it again; one that is given twice is one again.
class TensorCast {
 public:
  Tensor operator()(const Tensor& tensor) {
    const c10::ScalarType dtype = widened(tensor.scalar_type());
    if (dtype == tensor.scalar_type()) return tensor;
    Tensor& made = tensors_[tensor.unsafeGetTensorImpl()];
    if (!made.defined()) {
      const bool is_plain = tensor.has_storage() && !tensor.is_conj() && !tensor.is_neg();
      made = is_plain ? on_cast_storage(tensor, dtype) : tensor.detach().to(dtype);
      made.set_requires_grad(tensor.requires_grad());
    }
    return made;
  }

 private:
  Tensor on_cast_storage(const Tensor& tensor, c10::ScalarType dtype) {
    const c10::AutoGradMode no_grad(false);
    const c10::Storage& storage = tensor.storage();
    Tensor& all = storages_[{storage.unsafeGetStorageImpl(), tensor.scalar_type()}];
    if (!all.defined()) {
      const auto count = static_cast<std::int64_t>(storage.nbytes() / tensor.dtype().itemsize());
      all = at::empty({0}, tensor.options()).set_(storage, 0, {count}, {1}).to(dtype);
    }
    // No view in autograd's eyes: each is a leaf of its own.
    return at::empty({0}, all.options())
        .set_(all.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
  }

  std::unordered_map<const c10::TensorImpl*, Tensor> tensors_;
  std::map<std::pair<const c10::StorageImpl*, c10::ScalarType>, Tensor> storages_;
};

}  // namespace

std::unique_ptr<Graph> cast_graph_to_fp64(const Graph& graph) {
  graph::Pipeline pipeline(aten::pass_options_for(graph));

  // Alone: what judges the other results must not go through a pass that may be wrong.
  return pipeline.make(
      "fp64", [&] { return Cast(graph).run(); },
      [](const std::unique_ptr<Graph>& cast) { return std::vector<const Graph*>{cast.get()}; });
}

std::vector<Value> cast_inputs_to_fp64(const std::vector<Value>& inputs) {
  TensorCast cast;
  std::vector<Value> made;
  made.reserve(inputs.size());
  for (const Value& copy : clone_inputs_retaining_gradness(inputs)) {
    made.push_back(map_tensors(copy, [&](const Tensor& tensor) { return cast(tensor); }));
  }
  return made;
}

Fp64Program cast_to_fp64(const Graph& graph, const std::vector<Value>& inputs) {
  return {cast_graph_to_fp64(graph), cast_inputs_to_fp64(inputs)};
}

}  // namespace assay::compare
