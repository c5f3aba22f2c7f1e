// Where two graphs first differ.
#include "graph/graph.h"
#include "graph/print.h"

namespace assay::graph {

namespace {

std::string unlike(const std::string& what, const std::string& left, const std::string& right) {
  return what + ": '" + left + "' against '" + right + "'";
}

bool same_arguments(const Node& left, const Node& right) {
  const auto same_node = [](const Node& a, const Node& b) { return a.name() == b.name(); };
  if (left.args().size() != right.args().size()) return false;
  for (std::size_t i = 0; i < left.args().size(); ++i) {
    if (!equal(left.args()[i], right.args()[i], same_node)) return false;
  }
  if (left.kwargs().size() != right.kwargs().size()) return false;
  for (std::size_t i = 0; i < left.kwargs().size(); ++i) {
    if (left.kwargs()[i].name != right.kwargs()[i].name) return false;
    if (!equal(left.kwargs()[i].value, right.kwargs()[i].value, same_node)) return false;
  }
  return true;
}

std::string node_difference(const Node& left, const Node& right) {
  const std::string node = "node '" + left.name() + "'";
  if (left.name() != right.name()) return unlike("node name", left.name(), right.name());
  if (left.op() != right.op()) return unlike(node, to_string(left.op()), to_string(right.op()));
  if (!(left.target() == right.target())) {
    return unlike(node + " target", left.target().name(), right.target().name());
  }
  if (!same_arguments(left, right)) {
    return unlike(node + " call", print_call(left), print_call(right));
  }
  if (!(left.meta.value == right.meta.value)) return node + " differs in its value's metadata";
  if (!(left.meta.stack == right.meta.stack)) return node + " differs in its user stack";
  if (!(left.meta.provenance == right.meta.provenance)) return node + " differs in its provenance";
  if (left.meta.role != right.meta.role) return node + " is a tangent in one of them only";
  return {};
}

struct AttributeDifference {
  const std::string& name;

  std::string operator()(const TensorAttribute& left, const TensorAttribute& right) const {
    const auto no_nodes = [](const Node&, const Node&) { return false; };
    const bool same = left.meta == right.meta && left.fill == right.fill &&
                      left.is_parameter == right.is_parameter && left.low == right.low &&
                      left.high == right.high && equal(left.values, right.values, no_nodes);
    return same ? "" : "tensor attribute '" + name + "' differs";
  }
  std::string operator()(const ModuleAttribute& left, const ModuleAttribute& right) const {
    return is_same(left, right) ? "" : "module attribute '" + name + "' differs";
  }
  static bool is_same(const ModuleAttribute& left, const ModuleAttribute& right) {
    const auto no_nodes = [](const Node&, const Node&) { return false; };
    const std::size_t members = left.members == nullptr ? 0 : left.members->size();
    bool same = left.constructor == right.constructor && left.args.size() == right.args.size() &&
                left.kwargs.size() == right.kwargs.size() &&
                left.is_training == right.is_training && left.dtype == right.dtype &&
                members == (right.members == nullptr ? 0 : right.members->size());
    for (std::size_t i = 0; same && i < members; ++i) {
      same = (*left.members)[i].name == (*right.members)[i].name &&
             is_same((*left.members)[i].module, (*right.members)[i].module);
    }
    for (std::size_t i = 0; same && i < left.args.size(); ++i) {
      same = equal(left.args[i], right.args[i], no_nodes);
    }
    for (std::size_t i = 0; same && i < left.kwargs.size(); ++i) {
      same = left.kwargs[i].name == right.kwargs[i].name &&
             equal(left.kwargs[i].value, right.kwargs[i].value, no_nodes);
    }
    return same;
  }
  std::string operator()(const MissingSubgraph& left, const MissingSubgraph& right) const {
    return left.text == right.text ? "" : "attribute '" + name + "' differs";
  }
  std::string operator()(const std::shared_ptr<const Graph>& left,
                         const std::shared_ptr<const Graph>& right) const {
    if (left == right) return {};
    const std::string inner = difference(*left, *right);
    return inner.empty() ? "" : "in subgraph '" + name + "': " + inner;
  }
  template <typename Left, typename Right>
  std::string operator()(const Left&, const Right&) const {
    return "attribute '" + name + "' is of another kind";
  }
};

}  // namespace

std::string difference(const Graph& left, const Graph& right) {
  if (left.name() != right.name()) return unlike("graph name", left.name(), right.name());
  if (left.symbols() != right.symbols()) return "the size symbols or what is known of them differ";
  if (left.attributes().size() != right.attributes().size()) {
    return unlike("number of attributes", std::to_string(left.attributes().size()),
                  std::to_string(right.attributes().size()));
  }
  for (std::size_t i = 0; i < left.attributes().size(); ++i) {
    const Attribute& a = left.attributes()[i];
    const Attribute& b = right.attributes()[i];
    if (a.name != b.name) return unlike("attribute name", a.name, b.name);
    std::string found = std::visit(AttributeDifference{a.name}, a.value, b.value);
    if (!found.empty()) return found;
  }
  auto other = right.nodes().begin();
  for (const Node& node : left.nodes()) {
    if (other == right.nodes().end()) return "node '" + node.name() + "' is only in the first";
    std::string found = node_difference(node, *other);
    if (!found.empty()) return found;
    ++other;
  }
  if (other != right.nodes().end()) return "node '" + other->name() + "' is only in the second";
  return {};
}

}  // namespace assay::graph
