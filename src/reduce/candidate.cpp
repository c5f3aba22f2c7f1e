#include "reduce/candidate.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "graph/copy_nodes.h"
#include "graph/dtype_names.h"
#include "graph/rewrite.h"

namespace assay::reduce {

namespace {

using graph::Graph;
using graph::Node;
using nlohmann::json;

bool takes_item(const Node& node) {
  return node.calls("operator.getitem") && !node.args().empty() && node.args()[0].node() != nullptr;
}

// `a[0]` where `a` is a call with several results, as opposed to indexing a tensor.
const Node* items_source(const Node& node) {
  if (!takes_item(node)) return nullptr;
  const Node* source = node.args()[0].node();
  const bool is_tensor = source->meta.value.tensor() != nullptr;
  const bool is_index = node.args().size() == 2 && node.args()[1].get_if<std::int64_t>() != nullptr;
  return source->is_call() && !is_tensor && is_index ? source : nullptr;
}

RecordedValue parse_value(const json& object) {
  RecordedValue value;
  if (const auto constant = object.find("constant"); constant != object.end()) {
    value.kind = RecordedValue::Kind::constant;
    if (constant->is_boolean()) value.constant = constant->get<bool>();
    if (constant->is_number_integer()) value.constant = constant->get<std::int64_t>();
    if (constant->is_number_float()) value.constant = constant->get<double>();
    return value;
  }
  if (object.contains("items")) {
    value.kind = RecordedValue::Kind::several;
    return value;
  }
  if (!object.contains("storage")) return value;
  const auto dtype = graph::dtype_from_name(object.at("dtype").get<std::string>());
  if (!dtype) return value;
  value.kind = RecordedValue::Kind::tensor;
  value.storage.hash = object.at("storage").get<std::string>();
  value.storage.bytes = object.at("bytes").get<std::int64_t>();
  value.storage.dtype_hint = *dtype;
  graph::TensorMeta& meta = value.tensor.meta;
  meta.dtype = *dtype;
  for (std::int64_t size : object.at("size")) meta.sizes.emplace_back(size);
  for (std::int64_t stride : object.at("stride")) meta.strides.emplace_back(stride);
  meta.requires_grad = object.at("requires_grad").get<bool>();
  value.tensor.storage_offset = object.at("offset").get<std::int64_t>();
  return value;
}

// Cuts the calls that are not kept out of a copy of the graph.
class Cutter {
 public:
  Cutter(const Candidate& program, const std::set<const Node*>& kept)
      : program_(program), kept_(kept) {
    result_ = program;
    graph::NodeMap copies;
    graph_ = graph::copy_graph(*program.graph, copies);
    for (const auto& [node, copy] : copies) twins_.emplace(node, copy.node());
  }

  std::optional<Candidate> run() {
    if (!replace_removed()) return std::nullopt;
    choose_outputs();
    if (graph_->output()->args()[0].items().empty()) return std::nullopt;
    erase_unused(*graph_, kept_twins_);
    for (Node* placeholder : graph_->placeholders()) {
      if (placeholder->users().empty()) drop_input(result_, *graph_, *placeholder);
    }
    result_.graph = std::move(graph_);
    return std::move(result_);
  }

 private:
  bool is_removed(const Node& node) const { return node.is_call() && !kept_.contains(&node); }

  bool is_read_by_kept(const Node& node) const {
    return std::ranges::any_of(
        node.users(), [&](const Node* user) { return user->is_call() && kept_.contains(user); });
  }

  bool replace_removed() {
    for (const Node& node : program_.graph->nodes()) {
      if (node.is_call() && kept_.contains(&node)) kept_twins_.insert(twins_.at(&node));
      if (!is_removed(node) || !is_read_by_kept(node)) continue;
      if (!replace(node)) return false;
    }
    return true;
  }

  bool replace(const Node& node) {
    if (program_.values == nullptr) return false;
    const auto found = program_.values->find(node.name());
    if (found == program_.values->end()) return false;
    const RecordedValue& value = found->second;
    Node& twin = *twins_.at(&node);
    if (value.kind == RecordedValue::Kind::constant) {
      graph::replace_uses(twin, value.constant);
      return true;
    }
    if (value.kind != RecordedValue::Kind::tensor) return false;
    // Under the node's own name, by which its value is known.
    graph_->rename(twin, node.name() + "_removed");
    Node& input = add_placeholder(node.name());
    input.meta = node.meta;
    twin.replace_all_uses_with(input);
    repro::TensorInput described = value.tensor;
    described.storage = result_.storages.size();
    result_.storages.push_back(value.storage);
    result_.inputs.emplace_back(std::move(described));
    return true;
  }

  Node& add_placeholder(const std::string& name) {
    const auto first = std::ranges::find_if(
        graph_->nodes(), [](const Node& node) { return node.op() != graph::Op::placeholder; });
    const Graph::InsertBefore before(*graph_, *first);
    return graph_->placeholder(name);
  }

  // Results that are kept, and what nobody else reads.
  void choose_outputs() {
    std::vector<graph::Argument> outputs;
    std::set<const Node*> known;
    const auto add = [&](Node& node) {
      if (known.insert(&node).second) outputs.emplace_back(&node);
    };
    if (const Node* output = program_.graph->output()) {
      output->for_each_input([&](Node& node) {
        if (kept_.contains(&node)) add(*twins_.at(&node));
      });
    }
    graph_->output()->set_arguments({graph::Argument(graph::Tuple{})});
    for (Node& node : graph_->nodes()) {
      if (!kept_twins_.contains(&node) || has_kept_user(node)) continue;
      if (is_several(node)) continue;
      add(node);
    }
    graph_->output()->set_arguments({graph::Argument(graph::Tuple{std::move(outputs)})});
  }

  bool has_kept_user(const Node& node) const {
    return std::ranges::any_of(node.users(),
                               [&](const Node* user) { return kept_twins_.contains(user); });
  }

  bool is_several(const Node& node) const {
    if (program_.values == nullptr) return false;
    const auto found = program_.values->find(node.name());
    return found != program_.values->end() && found->second.kind == RecordedValue::Kind::several;
  }

  const Candidate& program_;
  const std::set<const Node*>& kept_;
  Candidate result_;
  std::unique_ptr<Graph> graph_;
  std::map<const Node*, Node*> twins_;
  std::set<const Node*> kept_twins_;
};

}  // namespace

bool Ends::has(std::string_view node) const {
  return noticed == node || std::ranges::find(wrong, node, &WrongCall::node) != wrong.end();
}

Recording parse_recording(const std::string& text) {
  Recording recording;
  const json values = json::parse(text);
  for (const auto& [name, value] : values.items()) recording.emplace(name, parse_value(value));
  return recording;
}

std::size_t count_calls(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(graph.nodes(), [](const Node& node) {
    return node.is_call() && items_source(node) == nullptr;
  }));
}

std::vector<Atom> atoms(const Graph& graph) {
  std::vector<Atom> result;
  std::map<const Node*, std::size_t> atom_of;
  for (const Node& node : graph.nodes()) {
    if (!node.is_call()) continue;
    const Node* source = items_source(node);
    if (source != nullptr) {
      const std::size_t atom = atom_of.at(source);
      result[atom].push_back(&node);
      atom_of.emplace(&node, atom);
      continue;
    }
    atom_of.emplace(&node, result.size());
    result.push_back({&node});
  }
  return result;
}

std::optional<Candidate> keep_calls(const Candidate& program, const std::set<const Node*>& kept) {
  return Cutter(program, kept).run();
}

void drop_input(Candidate& program, Graph& graph, Node& placeholder) {
  const auto placeholders = graph.placeholders();
  const auto position = std::ranges::find(placeholders, &placeholder) - placeholders.begin();
  graph.erase(placeholder);
  if (position < std::ssize(program.inputs)) {
    program.inputs.erase(program.inputs.begin() + position);
  }
  prune_storages(program);
}

void prune_storages(Candidate& program) {
  // Storages are numbered: those that are left move up.
  std::vector<std::size_t> moved(program.storages.size(), 0);
  std::vector<bool> is_used(program.storages.size(), false);
  for (const repro::Input& input : program.inputs) {
    if (const auto* tensor = std::get_if<repro::TensorInput>(&input))
      is_used[tensor->storage] = true;
  }
  std::vector<repro::StorageSpec> storages;
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i] = storages.size();
    if (is_used[i]) storages.push_back(std::move(program.storages[i]));
  }
  program.storages = std::move(storages);
  for (repro::Input& input : program.inputs) {
    if (auto* tensor = std::get_if<repro::TensorInput>(&input)) {
      tensor->storage = moved[tensor->storage];
    }
  }
}

namespace {

// An attribute may have a dotted name itself, so the graph is asked which one a target means.
void erase_unused_attributes(Graph& graph) {
  std::set<std::string, std::less<>> used;
  for (const Node& node : graph.nodes()) {
    if (node.op() != graph::Op::get_attr && node.op() != graph::Op::call_module) continue;
    const graph::Attribute* attribute = graph.attribute(node.target().name());
    if (attribute != nullptr) used.insert(attribute->name);
  }
  std::erase_if(graph.attributes(),
                [&](const graph::Attribute& attribute) { return !used.contains(attribute.name); });
}

}  // namespace

void erase_unused(Graph& graph, const std::set<const Node*>& keep) {
  for (auto node = graph.nodes().end(); node != graph.nodes().begin();) {
    --node;
    const bool may_go = (node->is_call() || node->op() == graph::Op::get_attr) &&
                        node->users().empty() && !keep.contains(&*node);
    if (!may_go) continue;
    Node& unused = *node;
    ++node;
    graph.erase(unused);
  }
  erase_unused_attributes(graph);
}

}  // namespace assay::reduce
