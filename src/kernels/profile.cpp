#include "kernels/profile.h"

#include <algorithm>
#include <atomic>

#include "assay/error.h"

namespace assay::kernels {

namespace {

std::atomic<Profile*> profile_of_process = nullptr;

}  // namespace

std::vector<ProfiledStep> Profile::steps() const {
  const std::scoped_lock lock(mutex_);
  std::vector<ProfiledStep> steps;
  steps.reserve(entries_.size());
  for (const Entry& entry : entries_) steps.push_back(entry.step);
  return steps;
}

void Profile::add(const void* program, std::size_t index, const StepDescription& description,
                  std::int64_t nanoseconds) {
  const std::scoped_lock lock(mutex_);
  auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.program == program && entry.index == index;
  });
  if (found == entries_.end()) {
    entries_.push_back({program, index, {description}});
    found = std::prev(entries_.end());
  }
  ++found->step.calls;
  found->step.nanoseconds += nanoseconds;
}

ProfileScope::ProfileScope(Profile& profile) {
  Profile* none = nullptr;
  internal_check(profile_of_process.compare_exchange_strong(none, &profile),
                 "one profile is made at a time");
}

ProfileScope::~ProfileScope() { profile_of_process.store(nullptr); }

Profile* current_profile() noexcept { return profile_of_process.load(std::memory_order_relaxed); }

}  // namespace assay::kernels
