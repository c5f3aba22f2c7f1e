#include "repro/call_syntax.h"

#include <algorithm>

#include "graph/annotation.h"
#include "graph/device_names.h"

namespace assay::repro {

using graph::SizeExpr;
using graph::python::Expression;

const Expression* Call::argument(std::size_t position, std::string_view keyword) const {
  if (position < positional()) return call_.children[position + 1];
  for (const auto& candidate : call_.keywords) {
    if (candidate.name == keyword) return candidate.value;
  }
  return nullptr;
}

const Expression& Call::required(std::size_t position, std::string_view keyword) const {
  if (const Expression* found = argument(position, keyword)) return *found;
  throw error(call_, "expected the argument '" + std::string(keyword) + "'");
}

void Call::refuse_others(std::initializer_list<std::string_view> known) const {
  for (const auto& keyword : call_.keywords) {
    if (std::ranges::find(known, keyword.name) == known.end()) {
      throw error(*keyword.value, "unknown argument '" + std::string(keyword.name) + "'");
    }
  }
}

SizeExpr Call::size(const Expression& expression) const {
  if (auto size = graph::size_from_syntax(expression)) return std::move(*size);
  throw error(expression, "expected a size");
}

std::vector<SizeExpr> Call::sizes(const Expression& expression) const {
  using Kind = Expression::Kind;
  if (expression.kind == Kind::call && expression.children.size() == 2 &&
      graph::python::dotted_name(*expression.children[0]) == "torch.Size") {
    return sizes(*expression.children[1]);
  }
  if (expression.kind != Kind::tuple && expression.kind != Kind::list) {
    throw error(expression, "expected a tuple of sizes");
  }
  std::vector<SizeExpr> made;
  for (const Expression* item : expression.children) made.push_back(size(*item));
  return made;
}

c10::Device Call::device(std::size_t position, std::string_view keyword) const {
  const Expression* given = argument(position, keyword);
  if (given == nullptr || given->kind == Expression::Kind::none) {
    return c10::Device(c10::DeviceType::CPU);
  }
  const graph::Argument value = graph::constant_from_syntax(source_, *given);
  if (const auto* found = value.get_if<c10::Device>()) return *found;
  if (const auto* name = value.get_if<std::string>()) {
    if (const auto device = graph::device_from_name(*name)) return *device;
    throw error(*given, "unknown device");
  }
  throw error(*given, "expected a device");
}

}  // namespace assay::repro
