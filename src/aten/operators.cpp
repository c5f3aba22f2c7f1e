#include "aten/operators.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "aten/operator_record.h"
#include "aten/process_groups.h"
#include "base/nearest_names.h"

namespace assay::aten {

namespace {

constexpr std::string_view kPrefix = "torch.ops.";

// `torch.ops.aten.add` for `aten::add`.
std::string without_overload(const std::string& qualified_name) {
  std::string text(kPrefix);
  const auto colons = qualified_name.find("::");
  if (colons == std::string::npos) return text + qualified_name;
  return text + qualified_name.substr(0, colons) + "." + qualified_name.substr(colons + 2);
}

const std::string& overload_name(const c10::OperatorHandle& op) {
  return op.operator_name().overload_name;
}

// All operators there are, by what a graph calls them. The dispatcher has them too, but under names
// that would have to be put together anew for each of the many questions about a node.
class OperatorTable {
 public:
  using Overloads = std::vector<c10::OperatorHandle>;

  // Operators come and go until the very end of the process, so it is never destroyed.
  static OperatorTable& instance() {
    static OperatorTable& table = *new OperatorTable;
    return table;
  }

  std::optional<c10::OperatorHandle> find(std::string_view name, std::string_view overload) const {
    const std::shared_lock lock(mutex_);
    const auto found = table_.find(name);
    if (found == table_.end()) return std::nullopt;
    const auto& handles = found->second;
    const auto handle = std::ranges::lower_bound(handles, overload, {}, overload_name);
    if (handle == handles.end() || overload_name(*handle) != overload) return std::nullopt;
    return *handle;
  }

  Overloads overloads(std::string_view name) const {
    const std::shared_lock lock(mutex_);
    const auto found = table_.find(name);
    return found == table_.end() ? Overloads() : found->second;
  }

  // True if there is any operator in the namespace of `torch.ops.aten.relu.default`.
  bool has_namespace(std::string_view target) const {
    const auto end = target.find('.', kPrefix.size());
    if (!target.starts_with(kPrefix) || end == std::string_view::npos) return false;
    const std::shared_lock lock(mutex_);
    return std::ranges::any_of(table_, [&](const auto& entry) {
      return std::string_view(entry.first).starts_with(target.substr(0, end + 1));
    });
  }

  std::vector<std::string> names() const {
    const std::shared_lock lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, handles] : table_) {
      for (const c10::OperatorHandle& handle : handles) names.push_back(python_name(handle));
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  // Called with the dispatcher's lock held: the table's own is always the inner one.
  struct Listener : c10::OpRegistrationListener {
    explicit Listener(OperatorTable& owner) : table(owner) {}
    void onOperatorRegistered(const c10::OperatorHandle& op) override { table.add(op); }
    void onOperatorDeregistered(const c10::OperatorHandle& op) override { table.remove(op); }
    OperatorTable& table;
  };

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  OperatorTable()
      : listening_(c10::Dispatcher::singleton().addRegistrationListener(
            std::make_unique<Listener>(*this))) {}

  void add(const c10::OperatorHandle& op) {
    const std::unique_lock lock(mutex_);
    Overloads& handles = table_[without_overload(op.operator_name().name)];
    const auto place = std::ranges::lower_bound(handles, overload_name(op), {}, overload_name);
    handles.insert(place, op);
  }

  void remove(const c10::OperatorHandle& op) {
    const std::unique_lock lock(mutex_);
    const auto found = table_.find(without_overload(op.operator_name().name));
    if (found == table_.end()) return;
    std::erase_if(found->second, [&](const c10::OperatorHandle& handle) {
      return overload_name(handle) == overload_name(op);
    });
    if (found->second.empty()) table_.erase(found);
  }

  mutable std::shared_mutex mutex_;
  std::unordered_map<std::string, Overloads, Hash, std::equal_to<>> table_;
  c10::RegistrationHandleRAII listening_;  // last: at once it tells all operators there are
};

}  // namespace

std::optional<c10::OperatorHandle> find_operator(const graph::Target& target) {
  if (!target.is_operator()) return std::nullopt;
  const std::string_view text = target.name();
  const auto dot = text.rfind('.');
  std::string_view overload = text.substr(dot + 1);
  if (overload == "default") overload = "";
  return OperatorTable::instance().find(text.substr(0, dot), overload);
}

std::vector<c10::OperatorHandle> overloads(const std::string& qualified_name) {
  return OperatorTable::instance().overloads(without_overload(qualified_name));
}

namespace {

// Where an operator that no library here registers may come from.
std::string how_to_supply(std::string_view target) {
  const auto is_in = [&](std::string_view space) {
    return target.starts_with(std::string(kPrefix) + std::string(space) + ".");
  };
  if (is_in("_c10d_functional") || is_in("c10d_functional") || is_in("c10d") || is_in("_dtensor") ||
      is_in("fsdp")) {
    return "--stack torch with --trust runs the file if it sets up its process groups itself";
  }
  if (target.find("triton_kernel_wrapper") != std::string_view::npos) {
    return "it calls a Triton kernel of the user's, which runs on GPUs only";
  }
  if (is_in("higher_order")) {
    return "it takes a function, and Assay does not run it; --stack torch runs the file with stock "
           "PyTorch";
  }
  return "it is a custom operator: load the library that registers it with --plugin FILE.so; if "
         "Python registers it, --stack torch with --trust runs what the file imports";
}

}  // namespace

void check_is_harmless(const c10::OperatorHandle& op) {
  if (operator_record(op).opens_files) {
    throw UserError("a graph file is not allowed to call " + python_name(op) + ": it opens a file",
                    "make the tensor an input instead");
  }
  const std::string& name = op.operator_name().name;
  if (name.starts_with("_c10d_functional::") && !name.ends_with("::wait_tensor") &&
      !simulates_process_groups()) {
    throw UserError(python_name(op) + " communicates between processes, and a graph file is one",
                    how_to_supply(python_name(op)));
  }
}

std::string python_name(const c10::OperatorHandle& op) {
  const std::string& overload = overload_name(op);
  return without_overload(op.operator_name().name) + "." +
         (overload.empty() ? "default" : overload);
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
  std::string hint =
      OperatorTable::instance().has_namespace(target) ? std::string() : how_to_supply(target);
  if (hint.empty()) {
    for (const std::string& name : base::nearest_names(target, OperatorTable::instance().names())) {
      hint += (hint.empty() ? "did you mean " : ", ") + name;
    }
  }
  if (hint.empty()) hint = how_to_supply(target);
  return UserError("unknown operator '" + target.substr(0, 200) + "'", hint);
}

}  // namespace assay::aten
