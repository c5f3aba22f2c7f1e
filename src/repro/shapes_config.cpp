#include "repro/shapes_config.h"

#include <string>

#include "graph/annotation.h"
#include "graph/dtype_names.h"
#include "graph/python_parser.h"

namespace assay::repro {

namespace {

using graph::SizeExpr;
using graph::python::Expression;
using Kind = Expression::Kind;

std::optional<std::vector<SizeExpr>> sizes(const Expression& list) {
  if (list.kind != Kind::list && list.kind != Kind::tuple) return std::nullopt;
  std::vector<SizeExpr> found;
  for (const Expression* item : list.children) {
    auto size = graph::size_from_syntax(*item);
    if (!size) return std::nullopt;
    found.push_back(std::move(*size));
  }
  return found;
}

std::optional<ShapesEntry> tensor(const Expression& call) {
  if (call.children.size() != 3 || call.children[2]->kind != Kind::name) return std::nullopt;
  auto shape = sizes(*call.children[1]);
  const auto dtype = graph::dtype_from_abbreviation(call.children[2]->text);
  if (!shape || !dtype) return std::nullopt;
  graph::TensorMeta meta;
  meta.dtype = *dtype;
  meta.strides = graph::contiguous_strides(*shape);
  meta.sizes = std::move(*shape);
  for (const Expression::Keyword& keyword : call.keywords) {
    auto strides = sizes(*keyword.value);
    if (keyword.name != "stride" || !strides || strides->size() != meta.sizes.size()) {
      return std::nullopt;
    }
    meta.strides = std::move(*strides);
  }
  return meta;
}

std::optional<ShapesEntry> entry(const Expression& item) {
  if (item.kind != Kind::call) return std::nullopt;
  const std::string kind = graph::python::dotted_name(*item.children[0]);
  if (kind == "T") return tensor(item);
  if (kind != "S" || item.children.size() != 2) return std::nullopt;
  const auto list = sizes(*item.children[1]);
  if (!list) return std::nullopt;
  graph::List made;
  for (const SizeExpr& size : *list) made.items.emplace_back(size);
  return graph::Argument(std::move(made));
}

}  // namespace

std::optional<std::vector<ShapesEntry>> parse_shapes_config(std::string_view text) {
  const graph::python::Source source{"_shapes_config", std::string(text)};
  graph::python::Module module;
  const Expression* whole = nullptr;
  try {
    whole = graph::python::parse_expression(source, module);
  } catch (const UserError&) {
    return std::nullopt;  // another tool's string of the same name
  }
  std::vector<const Expression*> items = {whole};  // "(T([2], f32))" is one item in parentheses
  if (whole->kind == Kind::tuple) items.assign(whole->children.begin(), whole->children.end());
  std::vector<ShapesEntry> entries;
  for (const Expression* item : items) {
    auto read = entry(*item);
    if (!read) return std::nullopt;
    entries.push_back(std::move(*read));
  }
  return entries;
}

}  // namespace assay::repro
