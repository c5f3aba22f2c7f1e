#include "kernels/lower.h"

#include <ATen/TensorUtils.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <string>

#include "assay/error.h"
#include "aten/call.h"
#include "aten/match.h"
#include "aten/operator_record.h"
#include "aten/operators.h"
#include "aten/plan.h"
#include "aten/result_structure.h"
#include "aten/value.h"
#include "kernels/lowerings/call.h"
#include "kernels/tensor_ref.h"

namespace assay::kernels {

namespace {

using aten::OperatorRecord;
using graph::Node;
using graph::TensorMeta;
using graph::ValueMeta;

struct KnownOperator {
  const Lowering* lowering = nullptr;
  /// nullptr for a prim in a process without Python.
  const c10::FunctionSchema* schema = nullptr;
};

// The table by target, so that a node's row is found by a pointer.
const std::unordered_map<const void*, KnownOperator>& lowerings_by_target() {
  static const auto found = [] {
    std::unordered_map<const void*, KnownOperator> rows;
    for (const Lowering& row : lowerings()) {
      std::string name = "torch.ops." + std::string(row.op);
      name.replace(name.find("::"), 2, ".");
      if (row.op.find('.') == std::string_view::npos) name += ".default";
      const graph::Target target(name);
      const auto op = aten::find_operator(target);
      if (!op && !row.op.starts_with("prims::")) {
        throw InternalError("a lowering of " + std::string(row.op) + ", which does not exist");
      }
      rows.emplace(target.id(), KnownOperator{&row, op ? &op->schema() : nullptr});
    }
    return rows;
  }();
  return found;
}

const TensorMeta* cpu_tensor(const ValueMeta& meta) {
  const TensorMeta* tensor = meta.tensor();
  return tensor != nullptr && tensor->device.is_cpu() ? tensor : nullptr;
}

// Every result is a tensor with a known layout and a dtype of kernels; None counts, as the gradient
// that nobody asked for.
Refusal check_results(const ValueMeta& meta) {
  if (const auto* items = std::get_if<std::vector<ValueMeta>>(&meta.value)) {
    for (const ValueMeta& item : *items) {
      if (!item.known()) continue;
      if (const Refusal refusal = check_results(item)) return refusal;
    }
    return nullptr;
  }
  const TensorMeta* tensor = cpu_tensor(meta);
  if (tensor == nullptr) return "its result is not a tensor with metadata on the CPU";
  if (!is_kernel_dtype(tensor->dtype)) return "its dtype is not one of kernels'";
  if (!layout_of(*tensor)) return "its sizes are symbols";
  return nullptr;
}

class Lowerer {
 public:
  explicit Lowerer(std::shared_ptr<const graph::Graph> half) {
    program_.name = half->name();
    program_.graph = std::move(half);
    program_.original = program_.graph;
    program_.steps.reserve(program_.graph->size());
    nodes_.reserve(program_.graph->size());
  }

  LoopProgram run() && {
    for (const Node& node : program_.graph->nodes()) {
      switch (node.op()) {
        case graph::Op::placeholder:
          add_input(node);
          break;
        case graph::Op::output:
          aten::for_each_result(node.args().at(0),
                                [&](const graph::Argument& leaf) { add_output(leaf); });
          break;
        case graph::Op::get_attr: {
          const graph::Attribute* attribute = program_.graph->attribute(node.target().name());
          const bool is_tensor = attribute == nullptr ||
                                 std::holds_alternative<graph::TensorAttribute>(attribute->value);
          if (is_tensor) {
            add_extern(node, "an attribute of the module");
          } else {
            nodes_[&node];  // a subgraph, which whoever calls it knows by the node
          }
          break;
        }
        default:
          lower_call(node);
          break;
      }
    }
    return std::move(program_);
  }

 private:
  // ---- inputs and outputs ----

  void add_input(const Node& node) {
    Lowered& lowered = nodes_[&node];
    const TensorMeta* meta = cpu_tensor(node.meta.value);
    const auto layout = meta == nullptr ? std::nullopt : layout_of(*meta);
    if (!layout) {
      program_.inputs.push_back(kNoBuffer);
      return;
    }
    lowered.tensor = add_buffer(Buffer::Kind::input, node.name(), *meta, *layout);
    program_.inputs.push_back(lowered.tensor->buffer);
  }

  void add_output(const graph::Argument& argument) {
    if (const Node* node = argument.node()) {
      const Lowered& lowered = nodes_.at(node);
      if (lowered.tensor) {
        program_.outputs.emplace_back(*lowered.tensor);
      } else if (lowered.items.empty()) {
        program_.outputs.emplace_back(node);
      } else {
        throw InternalError("a list of tensors is an output: " + node->name());
      }
    } else {
      program_.outputs.emplace_back(aten::pack_value(aten::constant_value(argument)));
    }
  }

  TensorRef add_buffer(Buffer::Kind kind, std::string name, const TensorMeta& meta,
                       const Layout& layout) {
    const auto id = static_cast<BufferId>(program_.buffers.size());
    program_.buffers.push_back({.kind = kind,
                                .name = std::move(name),
                                .dtype = meta.dtype,
                                .sizes = layout.sizes,
                                .strides = layout.strides,
                                .elements = extent(layout.sizes, layout.strides, 0).end});
    return {id, meta.dtype, layout.sizes, layout.strides, 0};
  }

  // ---- calls ----

  void lower_call(const Node& node) {
    if (node.calls("operator.getitem") && lower_item(node)) return;
    const auto known = lowerings_by_target().find(node.target().id());
    if (known != lowerings_by_target().end() && node.op() == graph::Op::call_function) {
      const Refusal refusal = lower_known(node, known->second);
      if (refusal == nullptr) return;
      add_extern(node, refusal);
      return;
    }
    const OperatorRecord& record = aten::operator_record(node);
    if (record.view != aten::View::never && record.writes.empty() && lower_view(node, record)) {
      return;
    }
    add_extern(node, reason_without_lowering(node, record));
  }

  bool lower_item(const Node& node) {
    const Node* source = node.args().at(0).node();
    const auto* position = node.args().at(1).get_if<std::int64_t>();
    if (source == nullptr || position == nullptr) return false;
    const std::vector<std::optional<TensorRef>>& items = nodes_.at(source).items;
    const auto count = static_cast<std::int64_t>(items.size());
    const std::int64_t wrapped = *position < 0 ? *position + count : *position;
    if (wrapped < 0 || wrapped >= count) return false;
    nodes_[&node].tensor = items[static_cast<std::size_t>(wrapped)];
    return true;
  }

  Refusal lower_known(const Node& node, const KnownOperator& known) {
    if (const Refusal refusal = check_results(node.meta.value)) return refusal;
    if (const Refusal refusal = check_operands(node)) return refusal;
    const std::size_t buffers = program_.buffers.size();
    Call call(node, known.schema, nodes_, program_);
    if (const Refusal refusal = known.lowering->function(call)) {
      program_.buffers.resize(buffers);
      return refusal;
    }
    nodes_[&node] = call.finish();
    return nullptr;
  }

  Refusal check_operands(const Node& node) {
    Refusal refusal = nullptr;
    node.for_each_input([&](const Node& input) {
      const Lowered& lowered = nodes_.at(&input);
      const auto check = [&](const std::optional<TensorRef>& ref) {
        if (!ref) {
          refusal = "an argument is not a tensor with metadata on the CPU";
        } else if (!is_kernel_dtype(ref->dtype)) {
          refusal = "an argument's dtype is not one of kernels'";
        }
      };
      if (lowered.items.empty()) check(lowered.tensor);
      for (const auto& item : lowered.items) check(item);
    });
    const auto mentions_symbol = [&](const graph::Argument& argument) {
      argument.for_each_size(
          [&](const graph::SizeExpr&) { refusal = "an argument mentions a symbol"; });
    };
    for (const graph::Argument& argument : node.args()) mentions_symbol(argument);
    for (const auto& argument : node.kwargs()) mentions_symbol(argument.value);
    return refusal;
  }

  // ---- views ----

  // The tensor that `meta` describes as a part of `base`, as item `number` of the call's results;
  // nothing if it is not one, or reaches beyond what the buffer is known to hold.
  std::optional<TensorRef> view_of(const Node& node, const Node& base_node, const ValueMeta& meta,
                                   std::size_t number = 0) {
    const auto& base = nodes_.at(&base_node).tensor;
    const TensorMeta* base_meta = cpu_tensor(base_node.meta.value);
    const TensorMeta* view_meta = cpu_tensor(meta);
    if (!base || base_meta == nullptr || view_meta == nullptr) return std::nullopt;
    // Complex tensors may carry a pending conjugation, which a reference cannot.
    if (view_meta->dtype != base->dtype || !is_kernel_dtype(base->dtype)) return std::nullopt;
    const auto layout = layout_of(*view_meta);
    const auto base_offset = base_meta->storage_offset.constant();
    if (!layout || !base_offset) return std::nullopt;
    std::optional<std::int64_t> distance = layout->offset - *base_offset;
    // A program may be traced on a copy of an input, which has no offset: then the metadata of the
    // views and that of the placeholder count from different places.
    if (base_node.op() == graph::Op::placeholder && *base_offset != 0) {
      distance = offset_of_view(node, base_node, *base, number);
    }
    if (!distance) return std::nullopt;
    TensorRef view{base->buffer, base->dtype, layout->sizes, layout->strides,
                   base->offset + *distance};
    const Extent reach = extent(view);
    if (reach.begin < 0 || reach.end > program_.buffers[base->buffer].elements) {
      // A tensor without elements touches nothing, wherever it is.
      if (reach.begin != reach.end) return std::nullopt;
      view.offset = 0;
    }
    return view;
  }

  // How far the view lies from its base, found by making it of a tensor with the base's layout.
  static std::optional<std::int64_t> offset_of_view(const Node& node, const Node& base_node,
                                                    const TensorRef& base, std::size_t number) {
    const auto op = aten::find_operator(node.target());
    // as_strided counts from the start of the storage, about which nothing is known.
    if (!op || node.target().base_name() == "as_strided") return std::nullopt;
    const at::Tensor stand_in =
        at::empty_strided(at::IntArrayRef(base.sizes.data(), base.sizes.size()),
                          at::IntArrayRef(base.strides.data(), base.strides.size()), base.dtype);
    const auto value_of = [&](const graph::Argument& argument) -> std::optional<aten::Value> {
      if (argument.node() == &base_node) return aten::Value(stand_in);
      bool mentions_node = false;
      argument.for_each_node([&](const Node&) { mentions_node = true; });
      return mentions_node ? std::nullopt : std::optional(aten::constant_value(argument));
    };
    aten::Arguments arguments;
    for (const graph::Argument& argument : node.args()) {
      auto value = value_of(argument);
      if (!value) return std::nullopt;
      arguments.positional.push_back(*std::move(value));
    }
    for (const graph::NamedArgument& argument : node.kwargs()) {
      auto value = value_of(argument.value);
      if (!value) return std::nullopt;
      arguments.keywords.push_back({argument.name, *std::move(value)});
    }
    std::string why;
    auto match = aten::match(*op, arguments, aten::Dialect::operator_call, why);
    if (!match) return std::nullopt;
    const aten::Value made = aten::call(*std::move(match));
    const aten::Value view = made.is_tensor() ? made : aten::unpack(made).at(number);
    return view.leaf.toTensor().storage_offset();
  }

  bool lower_view(const Node& node, const OperatorRecord& record) {
    if (record.view_of >= node.args().size()) return false;
    const Node* base = node.args()[record.view_of].node();
    if (base == nullptr) return false;
    if (record.view == aten::View::maybe) return lower_possible_view(node, *base);
    if (const auto* items = std::get_if<std::vector<ValueMeta>>(&node.meta.value.value)) {
      Lowered lowered;
      for (const ValueMeta& item : *items) {
        lowered.items.push_back(view_of(node, *base, item, lowered.items.size()));
        if (!lowered.items.back()) return false;
      }
      nodes_[&node] = std::move(lowered);
      return !items->empty();
    }
    const auto view = view_of(node, *base, node.meta.value);
    if (view) nodes_[&node].tensor = *view;
    return view.has_value();
  }

  // `reshape` and `contiguous`: where eager returned a view can be told from the layouts.
  bool lower_possible_view(const Node& node, const Node& base) {
    const auto& ref = nodes_.at(&base).tensor;
    const TensorMeta* meta = cpu_tensor(node.meta.value);
    const auto layout = meta == nullptr ? std::nullopt : layout_of(*meta);
    if (!ref || !layout || meta->dtype != ref->dtype || !is_kernel_dtype(ref->dtype)) return false;
    bool is_view = false;
    if (node.calls("torch.ops.aten.contiguous.default")) {
      is_view = layout->strides == ref->strides;
    } else if (node.calls("torch.ops.aten.reshape.default")) {
      is_view = at::detail::computeStride(at::IntArrayRef(ref->sizes.data(), ref->sizes.size()),
                                          at::IntArrayRef(ref->strides.data(), ref->strides.size()),
                                          at::DimVector(layout->sizes.begin(), layout->sizes.end()))
                    .has_value();
    } else {
      return false;
    }
    if (is_view) {
      const auto view = view_of(node, base, node.meta.value);
      if (view) nodes_[&node].tensor = *view;
      return view.has_value();
    }
    // A copy in the order of the elements. That of reshape is row-major, so that it is filled
    // through the sizes of what it is made of.
    Call call(node, nullptr, nodes_, program_);
    TensorRef target = call.result();
    if (target.sizes != ref->sizes) {
      if (target.strides != row_major_strides(target.sizes)) {
        program_.buffers.pop_back();
        return false;
      }
      target.sizes = ref->sizes;
      target.strides = row_major_strides(ref->sizes);
    }
    Body& body = call.kernel(ref->sizes);
    body.store(target, body.load(*ref));
    nodes_[&node] = call.finish();
    return true;
  }

  // ---- everything else ----

  static std::string reason_without_lowering(const Node& node, const OperatorRecord& record) {
    if (!record.is_known) return "not an operator";
    if (!record.writes.empty()) return "writes to its arguments";
    if (record.is_random) return "draws random numbers";
    if (record.view != aten::View::never) return "a view that is not a part of its base's elements";
    if (const Refusal refusal = check_results(node.meta.value)) return refusal;
    return "no lowering";
  }

  void add_extern(const Node& node, std::string reason) {
    const OperatorRecord& record = aten::operator_record(node);
    ExternCall call{.node = &node, .operands = {}, .results = {}, .writes = {}, .reason = {}};
    call.reason = std::move(reason);
    node.for_each_input([&](const Node& input) {
      const Lowered& lowered = nodes_.at(&input);
      if (lowered.tensor) {
        call.operands.emplace_back(*lowered.tensor);
      } else {
        call.operands.emplace_back(&input);
      }
    });
    const auto buffers_of = [&](std::size_t position, std::vector<BufferId>& into) {
      if (position >= node.args().size()) return;
      node.args()[position].for_each_node([&](const Node& input) {
        if (const auto& ref = nodes_.at(&input).tensor) into.push_back(ref->buffer);
      });
    };
    for (const std::size_t position : record.writes) buffers_of(position, call.writes);
    add_written_keywords(node, record, call.writes);
    if (!record.is_known && node.is_call()) {
      // It may write to whatever it is given.
      for (const auto& operand : call.operands) {
        if (const auto* ref = std::get_if<TensorRef>(&operand)) call.writes.push_back(ref->buffer);
      }
    }
    std::vector<BufferId> aliases;
    if (record.view != aten::View::never) buffers_of(record.view_of, aliases);
    nodes_[&node] = add_results(node, record, aliases, call);
    program_.steps.emplace_back(std::move(call));
  }

  // `add.out(x, y, out=z)`.
  void add_written_keywords(const Node& node, const OperatorRecord& record,
                            std::vector<BufferId>& writes) {
    if (record.writes.empty() || node.kwargs().empty()) return;
    const auto op = aten::find_operator(node.target());
    if (!op) return;
    for (const std::size_t position : record.writes) {
      for (const graph::NamedArgument& keyword : node.kwargs()) {
        if (keyword.name != op->schema().arguments()[position].name()) continue;
        keyword.value.for_each_node([&](const Node& input) {
          if (const auto& ref = nodes_.at(&input).tensor) writes.push_back(ref->buffer);
        });
      }
    }
  }

  // `add.out` returns what it was given to write to. What it is then is known by the node.
  static bool returns_arguments(const Node& node, const OperatorRecord& record) {
    if (record.writes.empty()) return false;
    const auto op = aten::find_operator(node.target());
    return !op || std::ranges::any_of(op->schema().returns(), [](const c10::Argument& result) {
      return result.alias_info() != nullptr && result.alias_info()->isWrite();
    });
  }

  Lowered add_results(const Node& node, const OperatorRecord& record,
                      const std::vector<BufferId>& aliases, ExternCall& call) {
    Lowered lowered;
    if (!record.writes.empty() && record.is_in_place) {
      lowered.tensor = nodes_.at(node.args().at(0).node()).tensor;
      return lowered;
    }
    if (returns_arguments(node, record)) return lowered;
    const auto add = [&](const ValueMeta& meta, const std::string& name) {
      const TensorMeta* tensor = cpu_tensor(meta);
      const auto layout = tensor == nullptr ? std::nullopt : layout_of(*tensor);
      std::optional<TensorRef> ref;
      if (layout) {
        ref = add_buffer(Buffer::Kind::result, name, *tensor, *layout);
        program_.buffers.back().aliases = aliases;
        call.results.push_back(ref->buffer);
      }
      return ref;
    };
    const ValueMeta& meta = node.meta.value;
    if (const auto* items = std::get_if<std::vector<ValueMeta>>(&meta.value)) {
      const bool are_tensors = std::ranges::all_of(*items, [](const ValueMeta& item) {
        return !item.known() || (cpu_tensor(item) != nullptr && layout_of(*cpu_tensor(item)));
      });
      if (!are_tensors) return lowered;
      for (std::size_t i = 0; i < items->size(); ++i) {
        lowered.items.push_back(add((*items)[i], node.name() + "_" + std::to_string(i)));
      }
    } else {
      lowered.tensor = add(meta, node.name());
    }
    return lowered;
  }

  LoopProgram program_;
  LoweredNodes nodes_;
};

}  // namespace

bool has_lowering(const Node& node) {
  return node.op() == graph::Op::call_function &&
         lowerings_by_target().contains(node.target().id());
}

LoopProgram lower(std::shared_ptr<const graph::Graph> half) {
  return Lowerer(std::move(half)).run();
}

}  // namespace assay::kernels
