/// \file How long each step of compiled programs takes: `assay run FILE --backend native
/// --profile`.
///
///     kernels::Profile profile;
///     {
///       const kernels::ProfileScope scope(profile);
///       ...  // compiled graphs are called, on any thread
///     }
///     for (const auto& step : profile.steps()) ...
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace assay::kernels {

/// What is known about a step whether it was timed or not.
struct StepDescription {
  std::string graph;  ///< The program's name: `forward`, `backward`.
  std::string name;   ///< The kernel's name, or the operator's.
  bool is_kernel = false;
  std::int64_t bytes = 0;  ///< Read and written, each element once.
  /// The user's source lines it was made of, `file:line`, each once.
  std::vector<std::string> lines;
};

struct ProfiledStep : StepDescription {
  std::int64_t calls = 0;
  std::int64_t nanoseconds = 0;
};

class Profile {
 public:
  /// In the order in which steps were first called.
  std::vector<ProfiledStep> steps() const;
  /// Counts one call. `program` and `index` identify the step.
  void add(const void* program, std::size_t index, const StepDescription& description,
           std::int64_t nanoseconds);

 private:
  struct Entry {
    const void* program;
    std::size_t index;
    ProfiledStep step;
  };
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// While it lives, every compiled program of the process is timed. One at a time.
class ProfileScope {
 public:
  explicit ProfileScope(Profile& profile);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;
};

/// The profile of the living scope, or nullptr.
Profile* current_profile() noexcept;

}  // namespace assay::kernels
