#include "graph/provenance.h"

#include <algorithm>

namespace assay::graph {

namespace {

void collect_names(const Provenance& provenance, std::vector<std::string>& names) {
  for (const NodeId id : provenance.nodes) {
    const RecordedStage::Entry* entry = provenance.stage->find(id);
    if (entry == nullptr) continue;
    const bool goes_on = !entry->from.empty() && !entry->from.stage->is_from_text();
    if (goes_on) {
      collect_names(entry->from, names);
    } else if (!provenance.stage->has_earlier() &&
               std::ranges::find(names, entry->name) == names.end()) {
      // In a later stage, what comes from nowhere was made on the way: no name of the first fits.
      names.push_back(entry->name);
    }
  }
}

}  // namespace

std::vector<std::string> Provenance::names() const {
  std::vector<std::string> names;
  collect_names(*this, names);
  return names;
}

void RecordedStage::add(NodeId id, std::string name, Provenance from) {
  if (entries_.size() <= id) entries_.resize(id + 1);
  has_earlier_ |= !from.empty() && !from.stage->is_from_text();
  entries_[id] = {std::move(name), std::move(from)};
}

Provenance NamedOrigins::of(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  Provenance made{stage_, {}};
  for (const std::string& name : names) {
    const auto [found, is_new] = ids_.try_emplace(name, static_cast<NodeId>(ids_.size()));
    if (is_new) stage_->add(found->second, name, {});
    made.nodes.push_back(found->second);
  }
  return made;
}

}  // namespace assay::graph
