#include "graph/graph.h"

#include <algorithm>
#include <atomic>
#include <cctype>

#include "assay/error.h"
#include "graph/copy_nodes.h"
#include "graph/python_names.h"

namespace assay::graph {

const char* to_string(Op op) {
  switch (op) {
    case Op::placeholder:
      return "placeholder";
    case Op::get_attr:
      return "get_attr";
    case Op::call_function:
      return "call_function";
    case Op::call_method:
      return "call_method";
    case Op::call_module:
      return "call_module";
    case Op::output:
      return "output";
  }
  throw InternalError("unknown op");
}

void Node::add_uses() {
  for_each_input([this](Node& input) { input.users_.push_back(this); });
}

void Node::drop_uses() {
  for_each_input([this](Node& input) {
    auto found = std::find(input.users_.rbegin(), input.users_.rend(), this);
    internal_check(found != input.users_.rend(), "a node's users must mention it");
    *found = input.users_.back();
    input.users_.pop_back();
  });
}

void Node::set_arguments(std::vector<Argument> args, std::vector<NamedArgument> kwargs) {
  drop_uses();
  args_ = std::move(args);
  kwargs_ = std::move(kwargs);
  add_uses();
}

void Node::replace_all_uses_with(Node& replacement) {
  if (&replacement == this) return;
  std::vector<Node*> users = users_;
  std::ranges::sort(users);
  users.erase(std::unique(users.begin(), users.end()), users.end());
  auto replace = [&](Node& node) -> Argument { return &node == this ? &replacement : &node; };
  for (Node* user : users) {
    std::vector<Argument> args;
    args.reserve(user->args_.size());
    for (const Argument& argument : user->args_) args.push_back(argument.map_nodes(replace));
    std::vector<NamedArgument> kwargs;
    kwargs.reserve(user->kwargs_.size());
    for (const NamedArgument& argument : user->kwargs_) {
      kwargs.push_back({argument.name, argument.value.map_nodes(replace)});
    }
    user->set_arguments(std::move(args), std::move(kwargs));
  }
}

std::vector<Node*> Graph::placeholders() {
  std::vector<Node*> found;
  for (Node& node : nodes_) {
    if (node.op() == Op::placeholder) found.push_back(&node);
  }
  return found;
}

std::vector<const Node*> Graph::placeholders() const {
  std::vector<const Node*> found;
  for (const Node& node : nodes_) {
    if (node.op() == Op::placeholder) found.push_back(&node);
  }
  return found;
}

std::string Graph::unique_name(std::string_view wish) const {
  std::string name = python_identifier(wish);
  if (!by_name_.contains(name)) return name;
  // As FX does: strip a numeric suffix and count on from there.
  std::string base = name;
  const auto underscore = base.rfind('_');
  if (underscore != std::string::npos && underscore > 0 && underscore + 1 < base.size() &&
      std::all_of(base.begin() + static_cast<std::ptrdiff_t>(underscore) + 1, base.end(),
                  [](char c) { return c >= '0' && c <= '9'; })) {
    base.resize(underscore);
  }
  int& suffix = next_suffix_[base];
  do {
    name = base + "_" + std::to_string(++suffix);
  } while (by_name_.contains(name));
  return name;
}

namespace {

std::uint64_t next_identity() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

Graph::Graph(std::string name) : name_(std::move(name)), identity_(next_identity()) {}

Node& Graph::append(Op op, std::string_view name, Target target) {
  const std::string_view wish = name.empty() ? target.base_name() : name;
  std::string unique = unique_name(wish);
  return insert(next_id_, op, std::move(unique), target);
}

// `name` is unique already.
Node& Graph::insert(NodeId id, Op op, std::string name, Target target) {
  const auto before = insert_before_ != nullptr ? insert_before_->position_ : nodes_.end();
  auto position = nodes_.emplace(before, Node::Key(), id, op, std::move(name), target);
  next_id_ = std::max(next_id_, id + 1);
  position->position_ = position;
  by_name_.emplace(position->name_, &*position);
  return *position;
}

Node& Graph::placeholder(std::string_view name, std::string parameter) {
  std::string target = parameter.empty() ? std::string(name) : std::move(parameter);
  return append(Op::placeholder, name, Target(target));
}

Node& Graph::get_attr(std::string attribute, std::string_view name) {
  std::string wish = name.empty() ? attribute : std::string(name);
  return append(Op::get_attr, wish, Target(attribute));
}

Node& Graph::call_function(Target target, std::vector<Argument> args,
                           std::vector<NamedArgument> kwargs, std::string_view name) {
  Node& node = append(Op::call_function, name, target);
  node.set_arguments(std::move(args), std::move(kwargs));
  return node;
}

Node& Graph::call_method(std::string method, std::vector<Argument> args,
                         std::vector<NamedArgument> kwargs, std::string_view name) {
  Node& node = append(Op::call_method, name, Target(method));
  node.set_arguments(std::move(args), std::move(kwargs));
  return node;
}

Node& Graph::call_module(std::string module, std::vector<Argument> args,
                         std::vector<NamedArgument> kwargs, std::string_view name) {
  std::string wish = name.empty() ? module : std::string(name);
  Node& node = append(Op::call_module, wish, Target(module));
  node.set_arguments(std::move(args), std::move(kwargs));
  return node;
}

Node& Graph::set_output(Argument value) {
  if (output_ == nullptr) output_ = &append(Op::output, "output", Target("output"));
  std::vector<Argument> args;
  args.push_back(std::move(value));
  output_->set_arguments(std::move(args));
  return *output_;
}

void Graph::erase(Node& node) {
  internal_check(node.users_.empty(), "only a node without users can be erased");
  node.drop_uses();
  by_name_.erase(node.name_);
  if (&node == output_) output_ = nullptr;
  if (&node == insert_before_) insert_before_ = nullptr;
  nodes_.erase(node.position_);
}

void Graph::rename(Node& node, std::string_view name) {
  if (node.name_ == name) return;
  std::string unique = unique_name(name);
  by_name_.erase(node.name_);
  node.name_ = std::move(unique);
  by_name_.emplace(node.name_, &node);
}

Node* Graph::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Attribute* Graph::attribute(std::string_view target) const {
  const std::string_view first = target.substr(0, target.find('.'));
  auto found = std::ranges::find_if(attributes_, [&](const Attribute& attribute) {
    return attribute.name == target || attribute.name == first;
  });
  return found == attributes_.end() ? nullptr : &*found;
}

std::unique_ptr<Graph> Graph::clone() const {
  NodeMap copies;
  return copy_graph(*this, copies);
}

std::shared_ptr<const RecordedStage> record_stage(const Graph& graph) {
  auto stage = std::make_shared<RecordedStage>(graph.identity());
  for (const Node& node : graph.nodes()) stage->add(node.id(), node.name(), node.meta.provenance);
  return stage;
}

}  // namespace assay::graph
