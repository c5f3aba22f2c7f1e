#include "config/store.h"

#include <pthread.h>

#include <bit>
#include <exception>
#include <mutex>
#include <unordered_set>

#include "observe/observe.h"

namespace assay::config {

namespace detail {

std::array<Word, settings.size()> words;

}  // namespace detail

namespace {

// What a setting is while nobody has set it.
struct Inherited {
  Value value;
  Origin origin;
  std::exception_ptr error = nullptr;  ///< The environment has a bad value.
};

struct Override {
  std::uint64_t scope;
  Value value;
};

struct Slot {
  std::optional<Inherited> inherited;  ///< Read once, so that the end of a patch restores it.
  std::optional<Value> assigned;
  std::vector<Override> overrides;  ///< Of living scopes; the last one counts.
};

struct Store {
  // Held while a value is stored and pushed, so that what is pushed last is what is stored. Before
  // `mutex`, which is not held while pushing: that reads settings.
  std::mutex changing;
  std::mutex mutex;
  std::array<Slot, settings.size()> slots;
  std::uint64_t next_scope = 0;
  // Never freed, so that get() can return references. There are as many as values were ever set.
  std::unordered_set<std::string> texts;
};

Store& make_store() {
  static Store& made = *new Store;  // never destroyed: what runs at exit may ask for settings
  // A child must not inherit a lock that a thread held which it does not have.
  const auto unlock = [] {
    made.mutex.unlock();
    made.changing.unlock();
  };
  const auto lock = [] {
    made.changing.lock();
    made.mutex.lock();
  };
  ::pthread_atfork(lock, unlock, unlock);
  return made;
}

Store& store() {
  static Store& instance = make_store();
  return instance;
}

Inherited read_inherited(const Setting& setting) {
  try {
    std::vector<std::string_view> names;
    for (const std::string_view name : setting.variables.names()) {
      if (!name.empty()) names.push_back(name);
    }
    const auto variable = base::read_variable(names);
    if (!variable) return {default_value(setting), {}};
    const Origin origin{Origin::Kind::environment, variable->name};
    return {parse_value(setting, *variable), origin};
  } catch (const UserError&) {
    return {default_value(setting), {}, std::current_exception()};
  }
}

Inherited& inherited(std::size_t index) {
  std::optional<Inherited>& known = store().slots[index].inherited;
  if (!known) known = read_inherited(settings[index]);
  return *known;
}

// With the lock held, as the next three. Throws if the environment has a bad value.
std::pair<const Value*, Origin> effective(std::size_t index) {
  const Slot& slot = store().slots[index];
  if (!slot.overrides.empty()) return {&slot.overrides.back().value, {Origin::Kind::set}};
  if (slot.assigned) return {&*slot.assigned, {Origin::Kind::set}};
  const Inherited& from_outside = inherited(index);
  if (from_outside.error) std::rethrow_exception(from_outside.error);
  return {&from_outside.value, from_outside.origin};
}

std::uint64_t as_bits(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return static_cast<std::uint64_t>(*integer);
  }
  if (const auto* number = std::get_if<double>(&value))
    return std::bit_cast<std::uint64_t>(*number);
  const std::string& kept = *store().texts.insert(std::get<std::string>(value)).first;
  return std::bit_cast<std::uint64_t>(&kept);
}

void publish(std::size_t index) {
  detail::Word& word = detail::words[index];
  const Slot& slot = store().slots[index];
  const bool is_bad = slot.overrides.empty() && !slot.assigned && inherited(index).error;
  if (!is_bad) word.bits.store(as_bits(*effective(index).first), std::memory_order_release);
  word.is_known.store(!is_bad, std::memory_order_release);
}

void warn_if_reserved(const Setting& setting) {
  if (!setting.is_reserved()) return;
  observe::log(observe::Component::torch, observe::Level::warning,
               [&] { return "the setting " + std::string(setting.name) + " has no effect yet"; });
}

// Without the lock: what is pushed may log, and a listener may ask for settings.
void push(std::size_t index) {
  const Setting& setting = settings[index];
  if (setting.push == nullptr) return;
  setting.push(std::get<std::string>(current_value(index).first), source_of(index));
}

// For what cannot fail: the values were in use before.
void push_restored(std::size_t index) noexcept {
  try {
    push(index);
  } catch (const std::exception& error) {
    observe::log(observe::Component::torch, observe::Level::warning, [&] {
      return "the setting " + std::string(settings[index].name) +
             " cannot be restored: " + error.what();
    });
  }
}

std::uint64_t add_overrides(std::vector<Assignment>& assignments) {
  for (Assignment& assignment : assignments) {
    assignment.value = checked_value(settings[assignment.index], std::move(assignment.value));
  }
  const std::lock_guard lock(store().mutex);
  const std::uint64_t scope = store().next_scope++;
  for (Assignment& assignment : assignments) {
    inherited(assignment.index);
    store().slots[assignment.index].overrides.push_back({scope, std::move(assignment.value)});
    publish(assignment.index);
  }
  return scope;
}

// Answers for which settings that changed the value: not where a later scope lives on.
std::vector<std::size_t> remove_overrides(std::uint64_t scope,
                                          const std::vector<std::size_t>& indexes) {
  std::vector<std::size_t> changed;
  const std::lock_guard lock(store().mutex);
  for (const std::size_t index : indexes) {
    std::vector<Override>& overrides = store().slots[index].overrides;
    const bool was_last = !overrides.empty() && overrides.back().scope == scope;
    std::erase_if(overrides, [&](const Override& entry) { return entry.scope == scope; });
    if (!was_last) continue;
    publish(index);
    changed.push_back(index);
  }
  return changed;
}

}  // namespace

std::string to_string(const Origin& origin) {
  switch (origin.kind) {
    case Origin::Kind::default_value:
      return "default";
    case Origin::Kind::environment:
      return "environment variable " + origin.variable;
    case Origin::Kind::set:
      return "set";
  }
  return "";
}

std::uint64_t detail::resolve(std::size_t index) {
  const std::lock_guard lock(store().mutex);
  const std::uint64_t bits = as_bits(*effective(index).first);
  publish(index);
  return bits;
}

std::pair<Value, Origin> current_value(std::size_t index) {
  const std::lock_guard lock(store().mutex);
  const auto [value, origin] = effective(index);
  return {*value, origin};
}

std::string source_of(std::size_t index) {
  const std::lock_guard lock(store().mutex);
  const Origin origin = effective(index).second;
  if (origin.kind == Origin::Kind::environment) return origin.variable;
  return "the setting " + std::string(settings[index].name);
}

void set_value(Assignment assignment) {
  const std::size_t index = assignment.index;
  Value value = checked_value(settings[index], std::move(assignment.value));
  warn_if_reserved(settings[index]);
  const std::lock_guard changing(store().changing);
  // Before it is stored: a value that cannot be pushed is not set.
  if (settings[index].push != nullptr) {
    settings[index].push(std::get<std::string>(value),
                         "the setting " + std::string(settings[index].name));
  }
  const std::lock_guard lock(store().mutex);
  Slot& slot = store().slots[index];
  inherited(index);
  if (slot.overrides.empty()) {
    slot.assigned = std::move(value);
  } else {
    slot.overrides.back().value = std::move(value);
  }
  publish(index);
}

void unset_value(std::size_t index) {
  const std::lock_guard changing(store().changing);
  {
    const std::lock_guard lock(store().mutex);
    Slot& slot = store().slots[index];
    if (!slot.assigned) return;
    slot.assigned.reset();
    publish(index);
    if (!slot.overrides.empty()) return;
  }
  push_restored(index);
}

PatchScope::PatchScope(std::vector<Assignment> assignments) {
  for (const Assignment& assignment : assignments) indexes_.push_back(assignment.index);
  {
    const std::lock_guard changing(store().changing);
    id_ = add_overrides(assignments);
    std::size_t pushed = 0;
    try {
      for (; pushed < indexes_.size(); ++pushed) push(indexes_[pushed]);
    } catch (...) {
      remove_overrides(id_, indexes_);
      for (std::size_t i = 0; i < pushed; ++i) push_restored(indexes_[i]);
      throw;
    }
  }
  for (const std::size_t index : indexes_) warn_if_reserved(settings[index]);
}

PatchScope::~PatchScope() {
  const std::lock_guard changing(store().changing);
  for (const std::size_t index : remove_overrides(id_, indexes_)) push_restored(index);
}

void reload_environment() {
  const std::lock_guard lock(store().mutex);
  for (std::size_t index = 0; index < settings.size(); ++index) {
    store().slots[index].inherited.reset();
    detail::words[index].is_known.store(false, std::memory_order_release);
  }
}

}  // namespace assay::config
