#include "repro/process_groups.h"

#include <string_view>

#include "graph/python_strings.h"
#include "repro/call_syntax.h"

namespace assay::repro {

namespace {

using graph::Argument;
using graph::Node;
using graph::python::Expression;
using graph::python::quote;
using Kind = Expression::Kind;

// The dictionary that stock writes.
aten::ProcessGroups written_groups(const Call& call, const Expression& groups) {
  if (groups.kind != Kind::dict) throw call.error(groups, "expected {'name': {'size': 8, ...}}");
  aten::ProcessGroups made;
  for (std::size_t i = 0; i + 1 < groups.children.size(); i += 2) {
    const Expression& name = *groups.children[i];
    const Expression& group = *groups.children[i + 1];
    if (name.kind != Kind::string || group.kind != Kind::dict) {
      throw call.error(name, "expected 'name': {'size': 8, 'rank': 0}");
    }
    aten::ProcessGroupSize& size = made[std::string(name.value)];
    for (std::size_t j = 0; j + 1 < group.children.size(); j += 2) {
      const Expression& value = *group.children[j + 1];
      if (value.kind != Kind::integer) throw call.error(value, "expected an integer");
      const auto number = static_cast<std::int64_t>(value.magnitude);
      if (group.children[j]->value == "size") size.size = number;
      if (group.children[j]->value == "rank") size.rank = number;
    }
  }
  return made;
}

// Collectives name their groups, and those that gather or scatter say how large they are.
aten::ProcessGroups groups_of_calls(const graph::Graph& graph) {
  aten::ProcessGroups made;
  for (const Node& node : graph.nodes()) {
    const std::string& target = node.target().name();
    if (!target.starts_with("torch.ops._c10d_functional.") || node.args().size() < 2) continue;
    const auto* name = node.args().back().get_if<std::string>();
    if (name == nullptr) continue;
    aten::ProcessGroupSize& group = made[*name];
    const Argument& before = node.args()[node.args().size() - 2];
    const auto* size = before.get_if<std::int64_t>();
    const bool is_size = target.find("gather") != std::string::npos ||
                         target.find("reduce_scatter") != std::string::npos;
    if (size != nullptr && is_size) group.size = *size;
    if (const auto* parts = before.get_if<graph::List>();
        parts != nullptr && target.find("all_to_all") != std::string::npos) {
      group.size = static_cast<std::int64_t>(parts->items.size());
    }
  }
  return made;
}

void check(const Call& call, const Expression& at, const aten::ProcessGroups& groups) {
  constexpr std::int64_t kMost = 1 << 20;
  for (const auto& [name, group] : groups) {
    if (group.size < 1 || group.size > kMost || group.rank < 0 || group.rank >= group.size) {
      throw call.error(at, "the process group '" + name + "' of " + std::to_string(group.size) +
                               " has no rank " + std::to_string(group.rank));
    }
  }
}

}  // namespace

void read_process_groups(ReproFile& file, const Expression& expression) {
  const Call call(*file.source, expression);
  const std::string callee = call.callee();
  if (callee.ends_with("setup_fake_process_groups")) {
    file.process_groups = written_groups(call, call.required(0, "group_info"));
  } else if (callee.ends_with("init_process_group")) {
    const Expression* backend = call.argument(0, "backend");
    if (backend == nullptr || backend->kind != Kind::string || backend->value != "fake") return;
    file.process_groups = groups_of_calls(*file.graph);
  } else {
    return;
  }
  check(call, expression, file.process_groups);
  if (file.process_groups.empty()) return;
  file.notes.push_back(
      "the file's process groups are fake: collectives get this process's own data");
}

std::string print_process_groups(const aten::ProcessGroups& groups) {
  std::string text;
  for (const auto& [name, group] : groups) {
    text += (text.empty() ? "{" : ", ") + quote(name) + ": {'size': " + std::to_string(group.size) +
            ", 'rank': " + std::to_string(group.rank) + "}";
  }
  return text + "}";
}

}  // namespace assay::repro
