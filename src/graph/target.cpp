#include "graph/target.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

namespace assay::graph {

namespace {

bool names_operator(std::string_view name) {
  return name.starts_with("torch.ops.") && std::ranges::count(name, '.') == 4;
}

std::string_view base_of(std::string_view name, bool is_operator) {
  if (is_operator) name = name.substr(0, name.rfind('.'));
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

Target::Entry::Entry(std::string_view text)
    : name(text), is_operator(names_operator(name)), base_name(base_of(name, is_operator)) {}

// Entries are never removed: programs use a few thousand different names at most, and an entry that
// could go would have to be counted at every copy of a node.
class TargetTable {
 public:
  // Targets may outlive static objects, so the table is never destroyed.
  static TargetTable& instance() {
    static TargetTable& table = *new TargetTable;
    return table;
  }

  const Target::Entry* intern(std::string_view name) {
    {
      const std::shared_lock lock(mutex_);
      const auto found = entries_.find(name);
      if (found != entries_.end()) return found->second.get();
    }
    auto made = std::make_unique<const Target::Entry>(name);
    const std::string_view key = made->name;
    const std::unique_lock lock(mutex_);
    return entries_.try_emplace(key, std::move(made)).first->second.get();
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::string_view, std::unique_ptr<const Target::Entry>> entries_;
};

Target::Target(std::string_view name) : entry_(TargetTable::instance().intern(name)) {}

}  // namespace assay::graph
