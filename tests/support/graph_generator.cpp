#include "support/graph_generator.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <random>

#include "assay/error.h"
#include "aten/plan.h"
#include "aten/resolve.h"
#include "aten/runner.h"
#include "repro/inputs.h"
#include "repro/write.h"

namespace assay::testing {

namespace {

using aten::Value;
using graph::Argument;
using graph::Graph;
using graph::Node;

// One call to try: built from the values at hand, kept if it runs.
struct Attempt {
  graph::Op op = graph::Op::call_function;
  std::string target;
  std::vector<Argument> args;
  std::vector<graph::NamedArgument> kwargs;
};

class Generator {
 public:
  Generator(const GeneratorOptions& options, repro::ContentStore* store)
      : options_(options), store_(store), random_(options.seed) {}

  repro::ReproFile run() {
    file_.stage = repro::Stage::unknown;
    file_.graph = std::make_unique<Graph>("Repro");
    graph_ = file_.graph.get();
    add_inputs();
    add_attributes();
    std::size_t made = 0;
    for (std::size_t tries = 0; made < options_.calls && tries < options_.calls * 20; ++tries) {
      if (attempt(propose())) ++made;
    }
    add_output();
    return std::move(file_);
  }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  // ---- inputs and attributes ----

  at::Tensor random_tensor() {
    static const std::vector<std::vector<std::int64_t>> kShapes = {{4, 6},    {6}, {4, 1}, {6, 4},
                                                                   {2, 4, 6}, {},  {6, 6}, {0, 6}};
    const auto& shape = pick(kShapes);
    std::vector<Value> sizes;
    for (std::int64_t size : shape) sizes.emplace_back(c10::IValue(size));
    const Value list = Value::sequence(Value::Kind::list, std::move(sizes));
    const std::size_t kind = below(10);
    if (kind == 0) return call("torch.ones", {list}, c10::ScalarType::Long);
    if (kind == 1) return call("torch.zeros", {list}, c10::ScalarType::Bool);
    if (kind == 2) return call("torch.randn", {list}, c10::ScalarType::Double);
    return call("torch.randn", {list}, c10::ScalarType::Float);
  }

  static at::Tensor call(const std::string& name, std::vector<Value> args, c10::ScalarType dtype) {
    const Value type(Value::Kind::dtype, static_cast<std::int64_t>(dtype));
    return aten::call(aten::resolve(graph::Op::call_function, name),
                      {std::move(args), {{"dtype", type}}}, name)
        .leaf.toTensor();
  }

  void add_inputs() {
    repro::seed_generator(options_.seed);
    std::vector<at::Tensor> tensors;
    const std::size_t count = 2 + below(4);
    for (std::size_t i = 0; i < count; ++i) {
      at::Tensor tensor = random_tensor();
      // Now and then a transposed one, or one that shares its storage with the one before.
      if (tensor.dim() == 2 && chance(20)) tensor = tensor.t();
      if (!tensors.empty() && chance(10)) tensor = tensors.back();
      tensors.push_back(tensor);
      const std::string name = "arg" + std::to_string(i) + "_1";
      Node& node = chance(20) ? graph_->placeholder("l_" + name + "_", "L_" + name + "_")
                              : graph_->placeholder(name);
      keep(node, c10::IValue(tensor));
    }
    repro::add_tensor_inputs(file_, tensors, store_);
    file_.save_directory = "checkpoints";
    if (chance(20)) {
      Node& node = graph_->placeholder("size_1");
      file_.inputs.emplace_back(repro::IntegerInput{6, "s0"});
      file_.symbols["s0"] = 6;
      keep(node, c10::IValue(6));
    }
  }

  void add_attributes() {
    if (chance(40)) {
      graph::TensorAttribute constant;
      constant.fill = graph::TensorAttribute::Fill::values;
      constant.values = graph::List{{0.5, -1.25, 3.0, 1e-05, 0.0, 7.0}};
      constant.meta.sizes = {6};
      constant.meta.strides = {1};
      graph_->attributes().push_back({"_tensor_constant0", constant});
      keep(graph_->get_attr("_tensor_constant0"), aten::attribute_value(constant));
    }
    if (options_.subgraphs && chance(30)) {
      auto body = std::make_shared<Graph>("wrap_body_0");
      Node& x = body->placeholder("x");
      Node& sine = body->call_function("torch.sin", {&x});
      body->set_output(graph::Tuple{{&body->call_function("operator.mul", {&sine, 2})}});
      graph_->attributes().push_back({"wrap_body_0", body});
      has_subgraph_ = true;
    }
  }

  // ---- calls ----

  Node* tensor() { return pick(tensors_); }

  Argument scalar() {
    switch (below(6)) {
      case 0:
        return static_cast<std::int64_t>(below(5)) - 2;
      case 1:
        return 1e-05;
      case 2:
        return -0.75;
      case 3:
        return 2.5;
      case 4:
        return std::numeric_limits<double>::infinity();
      default:
        return 3;
    }
  }

  Attempt propose() {
    std::vector<std::function<Attempt()>> choices = {
        [this] { return unary_operator(); },  [this] { return unary_operator(); },
        [this] { return binary_operator(); }, [this] { return binary_operator(); },
        [this] { return reduction(); },       [this] { return view_operator(); },
        [this] { return other_operator(); }};
    if (options_.torch_level) {
      choices.push_back([this] { return torch_function(); });
      choices.push_back([this] { return method(); });
      choices.push_back([this] { return python_operator(); });
      choices.push_back([this] { return index(); });
    }
    if (options_.in_place && chance(30)) return in_place();
    if (has_subgraph_ && chance(5)) {
      return {graph::Op::call_module, "wrap_body_0", {tensor()}, {}};
    }
    return pick(choices)();
  }

  Attempt unary_operator() {
    static const std::vector<std::string> kNames = {"relu",  "sin",     "cos", "tanh", "neg",
                                                    "abs",   "sigmoid", "exp", "sqrt", "rsqrt",
                                                    "clone", "sign",    "erf", "isnan"};
    return {
        graph::Op::call_function, "torch.ops.aten." + pick(kNames) + ".default", {tensor()}, {}};
  }

  Attempt binary_operator() {
    static const std::vector<std::string> kNames = {"add.Tensor", "sub.Tensor",      "mul.Tensor",
                                                    "div.Tensor", "maximum.default", "le.Tensor"};
    const std::string& name = pick(kNames);
    Attempt made{graph::Op::call_function, "torch.ops.aten." + name, {tensor()}, {}};
    made.args.push_back(name != "maximum.default" && chance(30) ? scalar() : Argument(tensor()));
    if (name == "add.Tensor" && chance(20)) made.kwargs.push_back({"alpha", 2});
    return made;
  }

  Attempt reduction() {
    switch (below(4)) {
      case 0:
        return {graph::Op::call_function,
                "torch.ops.aten.sum.dim_IntList",
                {tensor(), graph::List{{-1}}, true},
                {}};
      case 1:
        return {
            graph::Op::call_function, "torch.ops.aten.mean.dim", {tensor(), graph::List{{0}}}, {}};
      case 2:
        return {graph::Op::call_function,
                "torch.ops.aten.amax.default",
                {tensor(), graph::List{{-1}}, chance(50)},
                {}};
      default:
        return {graph::Op::call_function,
                "torch.ops.aten.var_mean.correction",
                {tensor(), graph::List{{-1}}},
                {{"correction", 0}, {"keepdim", true}}};
    }
  }

  Attempt view_operator() {
    switch (below(5)) {
      case 0:
        return {graph::Op::call_function,
                "torch.ops.aten.permute.default",
                {tensor(), graph::List{{1, 0}}},
                {}};
      case 1:
        return {graph::Op::call_function,
                "torch.ops.aten.view.default",
                {tensor(), graph::List{{-1, 6}}},
                {}};
      case 2:
        return {graph::Op::call_function,
                "torch.ops.aten.slice.Tensor",
                {tensor(), 0, 1, INT64_MAX},
                {}};
      case 3:
        return {graph::Op::call_function, "torch.ops.aten.unsqueeze.default", {tensor(), 0}, {}};
      default:
        return {graph::Op::call_function,
                "torch.ops.aten.expand.default",
                {tensor(), graph::List{{4, 6}}},
                {}};
    }
  }

  Attempt other_operator() {
    switch (below(6)) {
      case 0:
        return {graph::Op::call_function,
                "torch.ops.aten.full.default",
                {graph::List{{}}, scalar()},
                {{"dtype", c10::ScalarType::Float},
                 {"layout", c10::kStrided},
                 {"device", c10::Device(c10::DeviceType::CPU)},
                 {"pin_memory", false}}};
      case 1:
        return {graph::Op::call_function, "torch.ops.aten.mm.default", {tensor(), tensor()}, {}};
      case 2: {
        Node* one = tensor();
        return {graph::Op::call_function,
                "torch.ops.aten.cat.default",
                {graph::List{{one, one, tensor()}}},
                {}};
      }
      case 3:
        return {graph::Op::call_function, "torch.ops.aten.split.Tensor", {tensor(), 2}, {}};
      case 4:
        return {graph::Op::call_function,
                "torch.ops.aten.clone.default",
                {tensor()},
                {{"memory_format", c10::MemoryFormat::Contiguous}}};
      default:
        return {graph::Op::call_function,
                "torch.ops.aten.index.Tensor",
                {tensor(), graph::List{{graph::None{}, tensor()}}},
                {}};
    }
  }

  Attempt torch_function() {
    switch (below(5)) {
      case 0:
        return {graph::Op::call_function, "torch.relu", {tensor()}, {}};
      case 1:
        return {graph::Op::call_function,
                "torch.nn.functional.gelu",
                {tensor()},
                {{"approximate", "tanh"}}};
      case 2:
        return {graph::Op::call_function,
                "torch.nn.functional.dropout",
                {tensor(), 0.25, true, false},
                {}};
      case 3:
        return {graph::Op::call_function, "torch.where", {tensor(), tensor(), scalar()}, {}};
      default:
        return {graph::Op::call_function,
                "torch.cat",
                {graph::Tuple{{tensor(), tensor()}}},
                {{"dim", -1}}};
    }
  }

  Attempt method() {
    switch (below(5)) {
      case 0:
        return {graph::Op::call_method, "view", {tensor(), -1, 6}, {}};
      case 1:
        return {graph::Op::call_method, "to", {tensor(), c10::ScalarType::Double}, {}};
      case 2:
        return {graph::Op::call_method, "sum", {tensor()}, {{"dim", graph::Tuple{{-1}}}}};
      case 3:
        return {graph::Op::call_method, "transpose", {tensor(), 0, -1}, {}};
      default:
        return {graph::Op::call_method, "clamp", {tensor()}, {{"min", 0.0}, {"max", 1e+30}}};
    }
  }

  Attempt python_operator() {
    static const std::vector<std::string> kNames = {"add", "sub", "mul", "truediv", "pow", "lt"};
    const std::string target = "operator." + pick(kNames);
    if (!integers_.empty() && chance(30)) {
      return {graph::Op::call_function,
              target == "operator.pow" ? "operator.add" : target,
              {pick(integers_), static_cast<std::int64_t>(1 + below(3))},
              {}};
    }
    if (chance(15)) return {graph::Op::call_function, "operator.neg", {tensor()}, {}};
    if (chance(10)) return {graph::Op::call_function, "getattr", {tensor(), "mT"}, {}};
    if (chance(30)) return {graph::Op::call_function, target, {scalar(), tensor()}, {}};
    return {graph::Op::call_function,
            target,
            {tensor(), chance(50) ? scalar() : Argument(tensor())},
            {}};
  }

  Attempt index() {
    const graph::Slice all{{graph::None{}, graph::None{}, graph::None{}}};
    const std::vector<Argument> indices = {
        graph::Tuple{{all, graph::Slice{{1, 3, graph::None{}}}}},
        graph::Tuple{{graph::Ellipsis{}, 0}},
        graph::Tuple{{graph::None{}, graph::Slice{{graph::None{}, graph::None{}, 2}}}},
        graph::Slice{{-2, graph::None{}, graph::None{}}},
        0,
        graph::Tuple{{all, graph::List{{0, 2}}}},
    };
    return {graph::Op::call_function, "operator.getitem", {tensor(), pick(indices)}, {}};
  }

  Attempt in_place() {
    // Only on values the graph computed: an input may be shared by others.
    if (computed_.empty()) return unary_operator();
    Node* target = pick(computed_);
    switch (below(3)) {
      case 0:
        return {graph::Op::call_function, "operator.iadd", {target, scalar()}, {}};
      case 1:
        return {graph::Op::call_function, "operator.setitem", {target, 0, 1.5}, {}};
      default:
        return {graph::Op::call_method, "mul_", {target, 2}, {}};
    }
  }

  // Runs the call; if that works, it becomes a node.
  bool attempt(const Attempt& made) {
    Value result;
    try {
      result = evaluate(made);
    } catch (const std::exception&) {
      return false;  // the random operands did not fit
    }
    if (result.is_tensor() && result.leaf.toTensor().numel() > 4096) return false;
    Node& node = add(made);
    const auto made_by = std::to_string(below(90) + 1);
    if (chance(60)) {
      std::vector<graph::StackFrame> stack = {{"model.py",
                                               static_cast<std::int64_t>(below(200) + 1), "forward",
                                               "y = layer_" + made_by + "(x)  # it's \"quoted\""}};
      if (chance(30)) stack.push_back({"my layers/block.py", 7, "__call__", "f(x)"});
      node.meta.stack = std::move(stack);
      if (chance(30)) node.meta.provenance = origins_.of({"linear_" + made_by, "relu"});
    }
    keep(node, result);
    if (result.is_tensor()) computed_.push_back(&node);
    if (!result.is_tensor() && !result.is_number()) unpack_items(node, result);
    return true;
  }

  Node& add(const Attempt& made) {
    switch (made.op) {
      case graph::Op::call_method:
        return graph_->call_method(made.target, made.args, made.kwargs);
      case graph::Op::call_module:
        return graph_->call_module(made.target, made.args, made.kwargs);
      default:
        return graph_->call_function(made.target, made.args, made.kwargs);
    }
  }

  Value value_of(const Argument& argument) {
    if (Node* node = argument.node()) return values_.at(node);
    bool mentions_node = false;
    argument.for_each_node([&](Node&) { mentions_node = true; });
    if (!mentions_node) return aten::constant_value(argument);
    std::vector<Value> items;
    for (const Argument& item : argument.items()) items.push_back(value_of(item));
    const bool is_list = argument.get_if<graph::List>() != nullptr;
    return Value::sequence(is_list ? Value::Kind::list : Value::Kind::tuple, std::move(items));
  }

  Value evaluate(const Attempt& made) {
    aten::Arguments arguments;
    for (const Argument& argument : made.args) arguments.positional.push_back(value_of(argument));
    for (const auto& [name, value] : made.kwargs) {
      arguments.keywords.push_back({name, value_of(value)});
    }
    if (made.op == graph::Op::call_module) {
      const aten::GraphRunner runner(*graph_->attribute(made.target)->subgraph());
      return runner.run(arguments.positional);
    }
    return aten::call(aten::resolve(made.op, made.target), arguments, made.target);
  }

  void unpack_items(Node& node, const Value& value) {
    const auto items = aten::unpack(value);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0 && chance(30)) continue;
      keep(graph_->call_function("operator.getitem", {&node, static_cast<std::int64_t>(i)}),
           items[i]);
    }
  }

  void keep(Node& node, const Value& value) {
    values_[&node] = value;
    node.meta.value = aten::describe(value);
    if (value.is_tensor()) tensors_.push_back(&node);
    if (value.is_int()) integers_.push_back(&node);
  }

  void add_output() {
    std::vector<Argument> results;
    for (Node& node : graph_->nodes()) {
      if (values_.contains(&node) && values_.at(&node).is_tensor() &&
          (node.users().empty() || chance(10))) {
        results.emplace_back(&node);
      }
    }
    if (chance(20)) results.emplace_back(graph::None{});
    graph_->set_output(graph::Tuple{std::move(results)});
  }

  const GeneratorOptions& options_;
  repro::ContentStore* store_;
  std::mt19937_64 random_;
  repro::ReproFile file_;
  Graph* graph_ = nullptr;
  std::unordered_map<const Node*, Value> values_;
  std::vector<Node*> tensors_;
  std::vector<Node*> integers_;
  std::vector<Node*> computed_;
  graph::NamedOrigins origins_;
  bool has_subgraph_ = false;
};

}  // namespace

repro::ReproFile generate(const GeneratorOptions& options, repro::ContentStore* store) {
  return Generator(options, store).run();
}

std::unique_ptr<Graph> long_graph(std::size_t calls) {
  auto graph = std::make_unique<Graph>("Repro");
  graph::TensorMeta meta;
  meta.sizes = {8, 8};
  meta.strides = {8, 1};
  Node* x = &graph->placeholder("primals_1");
  Node* y = &graph->placeholder("primals_2");
  x->meta.value = {meta};
  y->meta.value = {meta};
  for (std::size_t i = 0; i < calls; ++i) {
    Node* made = nullptr;
    if (i % 3 == 0) {
      made = &graph->call_function("torch.ops.aten.add.Tensor", {x, y}, {{"alpha", 1}});
    } else if (i % 3 == 1) {
      made = &graph->call_function("torch.ops.aten.mul.Tensor", {x, 0.5});
    } else {
      made = &graph->call_function("torch.ops.aten.tanh.default", {x});
    }
    made->meta.value = {meta};
    if (i % 10 == 0) {
      made->meta.stack = {{"model.py", static_cast<std::int64_t>(i), "forward", "x = f(x, y)"}};
    } else if (x->op() != graph::Op::placeholder) {
      made->meta.stack = x->meta.stack;
    }
    x = made;
  }
  graph->set_output(graph::Tuple{{x}});
  return graph;
}

}  // namespace assay::testing
