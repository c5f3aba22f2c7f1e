/// \file The Graph: one intermediate representation for every stage.
///
/// A graph is an ordered list of nodes in single-assignment form, in FX's vocabulary: placeholders
/// first, then attribute reads and calls, then one output. Nodes know their users, so passes can
/// rewrite in place. The text form (graph/print.h, graph/parse.h) is the same program in Python.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/argument.h"
#include "graph/meta.h"
#include "graph/size_range.h"
#include "graph/target.h"

namespace assay::graph {

class Graph;

/// What a node does, with FX's names.
enum class Op { placeholder, get_attr, call_function, call_method, call_module, output };

const char* to_string(Op op);

class Node {
 public:
  Op op() const { return op_; }
  /// The same in copies of the graph, and never another node's.
  NodeId id() const { return id_; }
  const std::string& name() const { return name_; }
  const Target& target() const { return target_; }
  const std::vector<Argument>& args() const { return args_; }
  const std::vector<NamedArgument>& kwargs() const { return kwargs_; }
  /// The nodes that mention this one, once per mention, in no particular order.
  const std::vector<Node*>& users() const { return users_; }

  bool is_call() const {
    return op_ == Op::call_function || op_ == Op::call_method || op_ == Op::call_module;
  }
  bool calls(std::string_view function) const {
    return op_ == Op::call_function && target_.name() == function;
  }

  void set_target(Target target) { target_ = target; }
  void set_arguments(std::vector<Argument> args, std::vector<NamedArgument> kwargs = {});
  /// Makes every user of this node use `replacement` instead.
  void replace_all_uses_with(Node& replacement);
  /// Calls `visit` for every node this one mentions, once per mention.
  template <typename Visitor>
  void for_each_input(Visitor&& visit) const {
    for (const Argument& argument : args_) argument.for_each_node(visit);
    for (const NamedArgument& argument : kwargs_) argument.value.for_each_node(visit);
  }

  NodeMeta meta;

  // Only a Graph makes nodes; the key keeps the constructor usable by its list alone.
  class Key {
    friend class Graph;
    Key() = default;
  };
  Node(Key, NodeId id, Op op, std::string name, Target target)
      : id_(id), op_(op), name_(std::move(name)), target_(target) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

 private:
  friend class Graph;
  void add_uses();
  void drop_uses();

  NodeId id_;
  Op op_;
  std::string name_;
  Target target_;
  std::vector<Argument> args_;
  std::vector<NamedArgument> kwargs_;
  std::vector<Node*> users_;
  std::list<Node>::iterator position_;
};

/// How a tensor attribute gets its value.
struct TensorAttribute {
  enum class Fill { values, randn, zeros, constant, uniform };
  TensorMeta meta;
  Fill fill = Fill::zeros;
  bool is_parameter = false;
  /// For `Fill::values`: the elements as written (a number, or nested lists of numbers).
  Argument values;
  /// For `Fill::uniform` the bounds; for `Fill::constant` the value is `low`.
  double low = 0;
  double high = 1;
};

/// A module given by its constructor, e.g. `Linear(in_features=10, out_features=10)`.
/// graph/inline_modules.h replaces calls of those it knows by the functions they call.
struct ModuleAttribute {
  std::string constructor;
  std::vector<Argument> args;
  std::vector<NamedArgument> kwargs;
  bool is_training = true;
  std::optional<c10::ScalarType> dtype = {};  ///< Of its parameters, if not the default.
  /// The modules it is made of: `Sequential(Linear(2, 3), ReLU())` has "0" and "1".
  std::shared_ptr<const std::vector<struct ModuleMember>> members = nullptr;
};

struct ModuleMember {
  std::string name;
  ModuleAttribute module;
};

/// What the writer of the file left out: a subgraph's body (stock PyTorch prints `<lambda>()`), or
/// the whole attribute (`kMissingAttribute`).
struct MissingSubgraph {
  std::string text;
};
inline constexpr const char* kMissingAttribute = "<missing>()";
// It is read back as it is printed: any text in angle brackets is something missing.

/// A named attribute of the graph's module. A subgraph is shared by all copies of the graph:
/// whoever changes one changes a copy of it, and puts that in its place.
struct Attribute {
  std::string name;
  std::variant<TensorAttribute, ModuleAttribute, MissingSubgraph, std::shared_ptr<const Graph>>
      value;

  const Graph* subgraph() const {
    const auto* found = std::get_if<std::shared_ptr<const Graph>>(&value);
    return found == nullptr ? nullptr : found->get();
  }
};

class Graph {
 public:
  explicit Graph(std::string name = "Repro");
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// The class name of the text form.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  /// Nodes in execution order.
  std::list<Node>& nodes() { return nodes_; }
  const std::list<Node>& nodes() const { return nodes_; }
  std::size_t size() const { return nodes_.size(); }
  std::vector<Node*> placeholders();
  std::vector<const Node*> placeholders() const;
  /// The output node, or nullptr while the graph is being built.
  Node* output() { return output_; }
  const Node* output() const { return output_; }

  /// Each of these appends a node, or inserts it before the current insertion point. `name` is a
  /// wish: it is made unique.
  Node& placeholder(std::string_view name, std::string parameter = {});
  Node& get_attr(std::string attribute, std::string_view name = {});
  Node& call_function(Target target, std::vector<Argument> args,
                      std::vector<NamedArgument> kwargs = {}, std::string_view name = {});
  Node& call_method(std::string method, std::vector<Argument> args,
                    std::vector<NamedArgument> kwargs = {}, std::string_view name = {});
  Node& call_module(std::string module, std::vector<Argument> args,
                    std::vector<NamedArgument> kwargs = {}, std::string_view name = {});
  Node& set_output(Argument value);

  /// New nodes go before `node` until the returned guard dies.
  class InsertBefore {
   public:
    InsertBefore(Graph& graph, Node& node) : graph_(graph), saved_(graph.insert_before_) {
      graph.insert_before_ = &node;
    }
    ~InsertBefore() { graph_.insert_before_ = saved_; }
    InsertBefore(const InsertBefore&) = delete;
    InsertBefore& operator=(const InsertBefore&) = delete;

   private:
    Graph& graph_;
    Node* saved_;
  };

  /// Removes a node that nothing uses.
  void erase(Node& node);
  /// Renames a node; `name` is a wish, made unique.
  void rename(Node& node, std::string_view name);
  Node* find(std::string_view name) const;

  std::vector<Attribute>& attributes() { return attributes_; }
  const std::vector<Attribute>& attributes() const { return attributes_; }
  /// The attribute with this name, or nullptr. `target` may be dotted; its first part is looked up.
  const Attribute* attribute(std::string_view target) const;

  /// The symbols of the graph's sizes, as far as something is known about them.
  SizeSymbols& symbols() { return symbols_; }
  const SizeSymbols& symbols() const { return symbols_; }

  /// A number that this graph has in common with its copies only; never 0.
  std::uint64_t identity() const { return identity_; }

  /// An equal graph with the same node ids. It is the same stage of the program: a node of either
  /// comes from the same nodes of earlier stages. See also graph/copy_nodes.h.
  std::unique_ptr<Graph> clone() const;

 private:
  friend class NodeCopier;
  friend std::unique_ptr<Graph> copy_graph(const Graph& graph,
                                           std::unordered_map<const Node*, Argument>& copies);
  Node& append(Op op, std::string_view name, Target target);
  Node& insert(NodeId id, Op op, std::string name, Target target);
  std::string unique_name(std::string_view wish) const;

  std::string name_;
  std::list<Node> nodes_;
  Node* output_ = nullptr;
  Node* insert_before_ = nullptr;
  std::vector<Attribute> attributes_;
  SizeSymbols symbols_;
  std::uint64_t identity_;
  NodeId next_id_ = 0;
  std::unordered_map<std::string_view, Node*> by_name_;  // keys view the nodes' own names
  mutable std::unordered_map<std::string, int> next_suffix_;
};

/// The graph's nodes as they are now: for the provenance of nodes of a graph made from it.
std::shared_ptr<const RecordedStage> record_stage(const Graph& graph);

/// Empty if the graphs are equal (names, targets, arguments, metadata, symbols, attributes);
/// otherwise one
/// sentence that says where they first differ.
std::string difference(const Graph& left, const Graph& right);

}  // namespace assay::graph
