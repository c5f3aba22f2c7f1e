#include "capture/tracked.h"

#include "capture/torch_types.h"

namespace assay::capture {

Tracked* TrackedObjects::find(PyObject* object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return nullptr;
  if (found->second.weak && PyWeakref_GET_OBJECT(found->second.weak.get()) != object) {
    objects_.erase(found);  // the tensor died, and something else lives at its address
    return nullptr;
  }
  return &found->second;
}

Tracked& TrackedObjects::add(PyObject* object, Tracked::Kind kind) {
  Tracked& tracked = objects_[object];
  tracked = Tracked{};
  tracked.kind = kind;
  tracked.order = next_++;
  if (kind == Tracked::Kind::node && PyType_SUPPORTS_WEAKREFS(Py_TYPE(object))) {
    tracked.weak = Ref::steal(PyWeakref_NewRef(object, nullptr));
  } else {
    tracked.object = Ref::borrow(object);
  }
  recent_.push_back(object);
  return tracked;
}

void TrackedObjects::truncate(std::uint64_t order) {
  for (auto entry = objects_.begin(); entry != objects_.end();) {
    entry = entry->second.order >= order ? objects_.erase(entry) : std::next(entry);
  }
}

void TrackedObjects::forget(const std::unordered_set<const graph::Node*>& nodes) {
  std::erase_if(objects_, [&](const auto& entry) { return nodes.contains(entry.second.node); });
}

void TrackedObjects::sweep(std::uint64_t order) {
  for (std::size_t i = recent_.size(); i-- > 0;) {
    const auto found = objects_.find(recent_[i]);
    if (found == objects_.end()) {
      recent_.erase(recent_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    const Tracked& tracked = found->second;
    if (tracked.order < order) break;
    if (tracked.kind == Tracked::Kind::local && tracked.object &&
        Py_REFCNT(tracked.object.get()) == 1) {
      const Ref last = std::move(found->second.object);  // dropped after the entry is gone
      objects_.erase(found);
      recent_.erase(recent_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

void TrackedObjects::clear() {
  objects_.clear();
  recent_.clear();
  next_ = 0;
}

}  // namespace assay::capture
