#include "cli/dot.h"

#include "graph/annotation.h"

namespace assay::cli {

namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string style(const graph::Node& node) {
  switch (node.op()) {
    case graph::Op::placeholder:
      return "shape=ellipse, style=filled, fillcolor=\"#dbe9f6\"";
    case graph::Op::get_attr:
      return "shape=ellipse, style=filled, fillcolor=\"#eeeeee\"";
    case graph::Op::output:
      return "shape=box, style=\"filled,bold\", fillcolor=\"#e2f0d9\"";
    default:
      return "shape=box";
  }
}

}  // namespace

std::string to_dot(const graph::Graph& graph) {
  std::string text = "digraph \"" + escaped(graph.name()) + "\" {\n";
  text += "  rankdir=TB;\n  node [fontname=\"Helvetica\", fontsize=10];\n";
  for (const graph::Node& node : graph.nodes()) {
    std::string label = escaped(node.name());
    if (node.is_call()) label += "\\n" + escaped(std::string(node.target().name()));
    if (node.meta.value.known()) label += "\\n" + escaped(graph::annotation_text(node.meta.value));
    text += "  \"" + escaped(node.name()) + "\" [label=\"" + label + "\", " + style(node) + "];\n";
    node.for_each_input([&](const graph::Node& input) {
      text += "  \"" + escaped(input.name()) + "\" -> \"" + escaped(node.name()) + "\";\n";
    });
  }
  return text + "}\n";
}

}  // namespace assay::cli
