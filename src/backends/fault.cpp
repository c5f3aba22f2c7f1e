#include "backends/fault.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <mutex>
#include <random>
#include <vector>

#include "assay/error.h"
#include "backends/error.h"
#include "base/nearest_names.h"
#include "config/config.h"
#include "graph/rewrite.h"

namespace assay::backends {

namespace {

using graph::Graph;
using graph::Node;

constexpr std::array kKinds = {FaultKind::compile_error, FaultKind::runtime_error,
                               FaultKind::accuracy,      FaultKind::nan,
                               FaultKind::dtype,         FaultKind::second_call,
                               FaultKind::strides,       FaultKind::aliasing,
                               FaultKind::mutation,      FaultKind::no_exception,
                               FaultKind::segfault,      FaultKind::abort,
                               FaultKind::hang,          FaultKind::oom};

// These are in the graph, and so in every call of it.
bool is_in_graph(FaultKind kind) {
  return kind == FaultKind::strides || kind == FaultKind::aliasing || kind == FaultKind::mutation ||
         kind == FaultKind::no_exception;
}

thread_local int trial_runs = 0;

// `LayerNorm`, `layer_norm` and `layer_norm_` are one operator.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (char letter : name) {
    if (letter != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return plain;
}

std::string_view last_part(std::string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);  // npos + 1 is 0
}

bool is_in_place(const Node& node) {
  const std::string_view name = node.target().base_name();
  if (node.op() != graph::Op::call_module && name.ends_with('_') && !name.ends_with("__")) {
    return true;
  }
  return std::ranges::any_of(node.kwargs(), [](const graph::NamedArgument& argument) {
    const bool* value = argument.value.get_if<bool>();
    return argument.name == "inplace" && value != nullptr && *value;
  });
}

bool takes_item_of(const Node& user, const Node& node) {
  return user.calls("operator.getitem") && user.args()[0].node() == &node;
}

// What the call gives: itself, or for a call with several results those that are used.
std::vector<Node*> results_of(Node& node) {
  std::vector<Node*> items;
  for (Node* user : node.users()) {
    if (takes_item_of(*user, node) && std::ranges::find(items, user) == items.end()) {
      items.push_back(user);
    }
  }
  const bool is_one_tensor = node.meta.value.tensor() != nullptr;
  if (items.empty() || is_one_tensor) items.assign(1, &node);
  std::erase_if(items, [](const Node* item) {
    return item->meta.value.known() && item->meta.value.tensor() == nullptr;
  });
  return items;
}

constexpr const char* kFaultOperator = "torch.ops.assay_testing.fault.default";

void add_fault(Graph& graph, Node& node, const Fault& wanted, Node* changed_in_place) {
  auto position = std::ranges::find_if(graph.nodes(),
                                       [&](const Node& candidate) { return &candidate == &node; });
  Node& next = *std::next(position);
  const Graph::InsertBefore before(graph, next);
  Node& fault = graph.call_function(kFaultOperator, {}, {}, node.name() + "_fault");
  fault.meta = node.meta;
  node.replace_all_uses_with(fault);
  // Faults that count their calls do so for each place in the graph.
  std::string kind = to_string(wanted.kind);
  if (wanted.kind == FaultKind::second_call) kind += "#" + node.name();
  fault.set_arguments({&node, kind, wanted.percent, wanted.needs_threads});
  if (changed_in_place == nullptr) return;
  // Whoever reads the changed tensor from here on reads the faulty value.
  const auto replace = [&](Node& mentioned) -> graph::Argument {
    return &mentioned == changed_in_place ? &fault : &mentioned;
  };
  for (auto later = std::next(position, 2); later != graph.nodes().end(); ++later) {
    graph::map_arguments(
        *later, [&](const graph::Argument& argument) { return argument.map_nodes(replace); });
  }
}

Node* first_operand(const Node& call) {
  Node* found = nullptr;
  call.for_each_input([&](Node& operand) {
    const bool may_be_tensor =
        !operand.meta.value.known() || operand.meta.value.tensor() != nullptr;
    if (found == nullptr && may_be_tensor) found = &operand;
  });
  return found;
}

Node& node_after(Graph& graph, const Node& node) {
  const auto position = std::ranges::find_if(
      graph.nodes(), [&](const Node& candidate) { return &candidate == &node; });
  return *std::next(position);
}

// After the call its operand is not what it was: zeros become ones, and the rest zeros.
void change_operand(Graph& graph, Node& call, Node& operand) {
  const Graph::InsertBefore before(graph, node_after(graph, call));
  Node& plain = graph.call_function("torch.ops.aten.detach.default", {&operand}, {},
                                    call.name() + "_operand");
  graph.call_function("torch.ops.aten.eq_.Scalar", {&plain, 0}, {}, call.name() + "_mutation");
}

void replace_by_operand(Graph& graph, Node& call, Node& operand) {
  const Graph::InsertBefore before(graph, call);
  Node& instead =
      graph.call_function("torch.ops.aten.clone.default", {&operand}, {}, call.name() + "_fault");
  call.replace_all_uses_with(instead);
  graph.erase(call);
}

}  // namespace

const char* to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::compile_error:
      return "compile_error";
    case FaultKind::runtime_error:
      return "runtime_error";
    case FaultKind::accuracy:
      return "accuracy";
    case FaultKind::nan:
      return "nan";
    case FaultKind::dtype:
      return "dtype";
    case FaultKind::second_call:
      return "second_call";
    case FaultKind::strides:
      return "strides";
    case FaultKind::aliasing:
      return "aliasing";
    case FaultKind::mutation:
      return "mutation";
    case FaultKind::no_exception:
      return "no_exception";
    case FaultKind::segfault:
      return "segfault";
    case FaultKind::abort:
      return "abort";
    case FaultKind::hang:
      return "hang";
    case FaultKind::oom:
      return "oom";
  }
  return "";
}

namespace {

// `:50%` at the end, taken off the text.
int take_percent(std::string_view& text) {
  if (!text.ends_with('%')) return 100;
  const std::size_t colon = text.rfind(':');
  const std::string digits(text.substr(colon + 1, text.size() - colon - 2));
  int percent = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  if (colon == std::string_view::npos || error != std::errc() ||
      end != digits.data() + digits.size() || percent < 0 || percent > 100) {
    throw UserError("'" + digits + "%' is not a percentage of the calls, 0% to 100%",
                    "for example relu:abort:50%");
  }
  text = text.substr(0, colon);
  return percent;
}

// `:threads` at the end, taken off the text.
bool take_needs_threads(std::string_view& text) {
  constexpr std::string_view kMark = ":threads";
  if (!text.ends_with(kMark)) return false;
  text.remove_suffix(kMark.size());
  return true;
}

Fault parse_fault(std::string_view text) {
  const bool needs_threads = take_needs_threads(text);
  const int percent = take_percent(text);
  std::vector<std::string> names;
  std::string list;
  for (FaultKind kind : kKinds) {
    names.emplace_back(to_string(kind));
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    throw UserError("expected a fault as OPERATOR:KIND, found '" + std::string(text) + "'",
                    "for example relu:runtime_error; the kinds are " + list);
  }
  const std::string_view wanted = text.substr(colon + 1);
  for (FaultKind kind : kKinds) {
    if (wanted == to_string(kind)) {
      if (is_in_graph(kind) && (percent != 100 || needs_threads)) {
        throw UserError("a fault of the kind " + std::string(wanted) + " happens in every call",
                        "leave out the percentage and 'threads'");
      }
      return {std::string(text.substr(0, colon)), kind, percent, needs_threads};
    }
  }
  const auto nearest = base::nearest_names(wanted, names, 1);
  throw UserError(
      "unknown fault kind '" + std::string(wanted) + "'",
      (nearest.empty() ? "" : "did you mean " + nearest[0] + "? ") + "the kinds are " + list);
}

}  // namespace

bool happens(std::int64_t percent, bool needs_threads) {
  if (needs_threads && at::get_num_threads() == 1) return false;
  static std::mutex mutex;
  static std::mt19937 engine(std::random_device{}());
  const std::lock_guard lock(mutex);
  return std::uniform_int_distribution<std::int64_t>(0, 99)(engine) < percent;
}

std::vector<Fault> parse_faults(std::string_view text) {
  std::vector<Fault> faults;
  while (true) {
    const std::size_t comma = text.find(',');
    faults.push_back(parse_fault(text.substr(0, comma)));
    if (comma == std::string_view::npos) return faults;
    text = text.substr(comma + 1);
  }
}

std::string to_text(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) {
    text += (text.empty() ? "" : ",") + fault.op + ":" + to_string(fault.kind);
    if (fault.percent != 100) text += ":" + std::to_string(fault.percent) + "%";
    if (fault.needs_threads) text += ":threads";
  }
  return text;
}

void set_faults(const std::vector<Fault>& faults) { config::set<"inject_fault">(to_text(faults)); }

std::vector<Fault> current_faults() {
  const std::string& text = config::get<"inject_fault">();
  if (text.empty()) return {};
  return parse_faults(text);
}

FaultScope::FaultScope(const Fault& fault)
    : scope_({config::assign<"inject_fault">(to_text({fault}))}) {}

namespace {

// A fault comes from the node after which it stands.
void mark_origins(Graph& graph) {
  const auto stage = graph::record_stage(graph);
  for (Node& node : graph.nodes()) {
    const Node* source = &node;
    while (source->calls(kFaultOperator)) source = source->args()[0].node();
    if (source != &node) node.meta.provenance = {stage, {source->id()}};
  }
}

}  // namespace

bool calls_operator(const Graph& graph, const Node& node, std::string_view op) {
  if (!node.is_call()) return false;
  std::string_view name = node.target().base_name();
  if (node.op() == graph::Op::call_module) {
    const graph::Attribute* attribute = graph.attribute(node.target().name());
    if (attribute == nullptr) return false;
    const auto* module = std::get_if<graph::ModuleAttribute>(&attribute->value);
    if (module == nullptr) return false;
    name = last_part(module->constructor);
  }
  return plain_name(name) == plain_name(op);
}

void FaultInjector::inject_into(Graph& graph) {
  for (graph::Attribute& attribute : graph.attributes()) {
    if (attribute.subgraph() == nullptr) continue;
    std::shared_ptr<Graph> body = attribute.subgraph()->clone();
    inject_into(*body);
    attribute.value = std::move(body);
  }
  std::vector<Node*> calls;
  for (Node& node : graph.nodes()) {
    if (node.is_call()) calls.push_back(&node);
  }
  for (Node* call : calls) {
    for (const Fault& fault : faults_) {
      if (calls_operator(graph, *call, fault.op)) inject_at(graph, *call, fault);
    }
  }
  mark_origins(graph);
}

void FaultInjector::inject_at(Graph& graph, Node& call, const Fault& fault) {
  if (fault.kind == FaultKind::compile_error) {
    if (!happens(fault.percent, fault.needs_threads)) return;
    throw BackendError(
        backend_,
        "injected compile error at '" + call.name() + "', a call of " + call.target().name(),
        call.name(), call.meta.provenance);
  }
  if (fault.kind == FaultKind::mutation || fault.kind == FaultKind::no_exception) {
    Node* operand = first_operand(call);
    if (operand == nullptr) return;
    ++count_;
    if (fault.kind == FaultKind::mutation) {
      change_operand(graph, call, *operand);
    } else {
      replace_by_operand(graph, call, *operand);
    }
    return;
  }
  Node* changed = is_in_place(call) && !call.args().empty() ? call.args()[0].node() : nullptr;
  for (Node* result : results_of(call)) {
    add_fault(graph, *result, fault, changed);
    ++count_;
  }
}

std::shared_ptr<const Graph> FaultInjector::inject(std::shared_ptr<const Graph> graph) {
  const std::size_t before = count_;
  std::shared_ptr<Graph> faulty = graph->clone();
  inject_into(*faulty);
  if (count_ == before) return graph;
  return faulty;
}

std::shared_ptr<const Graph> FaultInjector::inject_where_from(std::shared_ptr<const Graph> graph,
                                                              const Graph& origin) {
  const std::size_t before = count_;
  std::shared_ptr<Graph> faulty = graph->clone();
  std::vector<Node*> calls;
  for (Node& node : faulty->nodes()) {
    if (node.is_call()) calls.push_back(&node);
  }
  for (const Node& call : origin.nodes()) {
    for (const Fault& fault : faults_) {
      if (!calls_operator(origin, call, fault.op)) continue;
      const auto last = std::find_if(calls.rbegin(), calls.rend(), [&](const Node* node) {
        const auto names = node->meta.provenance.names();
        return std::ranges::find(names, call.name()) != names.end();
      });
      if (last != calls.rend()) inject_at(*faulty, **last, fault);
    }
  }
  if (count_ == before) return graph;
  mark_origins(*faulty);
  return faulty;
}

FaultsAsleepScope::FaultsAsleepScope() { ++trial_runs; }
FaultsAsleepScope::~FaultsAsleepScope() { --trial_runs; }
bool FaultsAsleepScope::on_this_thread() { return trial_runs > 0; }

}  // namespace assay::backends
