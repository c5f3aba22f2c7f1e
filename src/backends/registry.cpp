// The registry behind assay/backend.h.
#include <algorithm>
#include <shared_mutex>

#include "assay/backend.h"
#include "assay/error.h"
#include "backends/backends.h"
#include "base/nearest_names.h"

namespace assay {

namespace {

using BackendPointer = std::shared_ptr<const Backend>;

struct Registry {
  Registry() {
    for (Backend& backend : backends::own_backends()) {
      all.push_back(std::make_shared<const Backend>(std::move(backend)));
    }
  }

  std::shared_mutex mutex;
  std::vector<BackendPointer> all;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

BackendPointer find_in(const std::vector<BackendPointer>& backends, std::string_view name) {
  const auto found = std::ranges::find_if(
      backends, [&](const BackendPointer& backend) { return backend->name == name; });
  return found == backends.end() ? nullptr : *found;
}

}  // namespace

void register_backend(Backend backend) {
  if (backend.name.empty()) throw UserError("a backend needs a name");
  if (!backend.compile) {
    throw UserError("the backend '" + backend.name + "' has no compile function");
  }
  Registry& known = registry();
  const std::unique_lock lock(known.mutex);
  if (find_in(known.all, backend.name) != nullptr) {
    throw UserError("the backend '" + backend.name + "' is already registered",
                    "use a different name");
  }
  known.all.push_back(std::make_shared<const Backend>(std::move(backend)));
}

std::vector<BackendPointer> all_backends() {
  Registry& known = registry();
  const std::shared_lock lock(known.mutex);
  return known.all;
}

BackendPointer find_backend(std::string_view name) {
  const auto all = all_backends();
  if (auto found = find_in(all, name)) return found;
  std::vector<std::string> names;
  for (const auto& backend : all) names.push_back(backend->name);
  const auto nearest = base::nearest_names(name, names);
  std::string hint = "`assay backends` lists them all";
  if (!nearest.empty()) {
    hint = "did you mean " + nearest[0];
    for (std::size_t i = 1; i < nearest.size(); ++i) hint += " or " + nearest[i];
    hint += "? `assay backends` lists them all";
  }
  throw UserError("unknown backend '" + std::string(name) + "'", hint);
}

}  // namespace assay
