#include "aten/operators.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace assay::aten {

namespace {

constexpr std::string_view kPrefix = "torch.ops.";

using OverloadTable = std::map<std::string, std::vector<c10::OperatorHandle>, std::less<>>;

// Built at the first use: most runs name every operator in full and never need it.
OverloadTable make_table() {
  OverloadTable table;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (auto handle = dispatcher.findSchema(name)) table[name.name].push_back(*handle);
  }
  for (auto& [name, handles] : table) {
    std::ranges::sort(handles, {}, [](const c10::OperatorHandle& handle) {
      return handle.operator_name().overload_name;
    });
  }
  return table;
}

const OverloadTable& overload_table() {
  static const OverloadTable table = make_table();
  return table;
}

// Number of single-character edits between two short words.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t substituted = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::optional<c10::OperatorHandle> find_operator(const graph::Target& target) {
  if (!target.is_operator()) return std::nullopt;
  const std::string_view rest = std::string_view(target.name()).substr(kPrefix.size());
  const auto first = rest.find('.');
  const auto last = rest.rfind('.');
  std::string name(rest.substr(0, first));
  name += "::";
  name += rest.substr(first + 1, last - first - 1);
  std::string overload(rest.substr(last + 1));
  if (overload == "default") overload.clear();
  auto& dispatcher = c10::Dispatcher::singleton();
  return dispatcher.findSchema(c10::OperatorName(std::move(name), std::move(overload)));
}

const std::vector<c10::OperatorHandle>& overloads(const std::string& qualified_name) {
  static const std::vector<c10::OperatorHandle> none;
  auto found = overload_table().find(qualified_name);
  return found == overload_table().end() ? none : found->second;
}

void check_is_harmless(const c10::OperatorHandle& op) {
  // Of all operators that libtorch registers this one alone opens (and may create) a file.
  if (op.operator_name().name == "aten::from_file") {
    throw UserError("a graph file may not run " + python_name(op) + ": it opens a file",
                    "make the tensor an input instead");
  }
}

std::string python_name(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  std::string text(kPrefix);
  const auto colons = name.name.find("::");
  text += name.name.substr(0, colons) + "." + name.name.substr(colons + 2) + ".";
  return text + (name.overload_name.empty() ? "default" : name.overload_name);
}

std::vector<std::string> nearest_names(std::string_view name, const std::vector<std::string>& known,
                                       std::size_t count) {
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  // A hostile name may be megabytes long; no known one is.
  constexpr std::size_t kLongestName = 256;
  if (name.size() > kLongestName) return {};
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance <= std::max<std::size_t>(2, name.size() / 3)) {
      ranked.emplace_back(distance, &candidate);
    }
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string> best;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) {
    best.push_back(*ranked[i].second);
  }
  return best;
}

UserError unknown_operator(const std::string& target) {
  // Another overload of the same operator is the likeliest wish.
  if (const auto dot = target.rfind('.'); dot != std::string::npos) {
    std::string qualified = target.substr(0, dot);
    if (qualified.starts_with(kPrefix)) qualified.erase(0, kPrefix.size());
    if (const auto first = qualified.find('.'); first != std::string::npos) {
      qualified.replace(first, 1, "::");
    }
    std::string names;
    for (const c10::OperatorHandle& handle : overloads(qualified)) {
      names += (names.empty() ? "" : ", ") + python_name(handle);
    }
    if (!names.empty()) {
      return UserError("unknown overload '" + target.substr(0, 200) + "'",
                       "its overloads are " + names);
    }
  }
  std::vector<std::string> known;
  for (const auto& [name, handles] : overload_table()) {
    for (const c10::OperatorHandle& handle : handles) known.push_back(python_name(handle));
  }
  std::string hint;
  for (const std::string& name : nearest_names(target, known)) {
    hint += (hint.empty() ? "did you mean " : ", ") + name;
  }
  if (hint.empty()) hint = "a custom operator is known only where its library is loaded";
  return UserError("unknown operator '" + target.substr(0, 200) + "'", hint);
}

}  // namespace assay::aten
