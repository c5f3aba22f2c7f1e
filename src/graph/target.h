/// \file What a node calls, as an interned name: `torch.relu`, `view`, `torch.ops.aten.add.Tensor`.
///
/// Equal names are one object, so targets are compared, copied and looked up by pointer. That is
/// what makes it cheap for other rooms to keep facts about a target (aten/operator_record.h).
#pragma once

#include <string>
#include <string_view>

namespace assay::graph {

/// What a node calls (or, for a placeholder, the parameter's name; for get_attr, the attribute's).
class Target {
 public:
  Target(std::string_view name);  // NOLINT: a target is written as its name
  Target(const std::string& name) : Target(std::string_view(name)) {}  // NOLINT
  Target(const char* name) : Target(std::string_view(name)) {}         // NOLINT

  const std::string& name() const { return entry_->name; }
  /// True for an operator by its full name: `torch.ops.<namespace>.<name>.<overload>`.
  bool is_operator() const { return entry_->is_operator; }
  /// The last part of the dotted name, or for an operator its base name: `relu`.
  std::string_view base_name() const { return entry_->base_name; }
  /// The same for equal names, and different for different ones, as long as the process lives.
  const void* id() const { return entry_; }

  bool operator==(const Target& other) const { return entry_ == other.entry_; }

 private:
  friend class TargetTable;
  struct Entry {
    explicit Entry(std::string_view text);
    std::string name;
    bool is_operator;
    std::string_view base_name;  // views `name`
  };
  const Entry* entry_;
};

}  // namespace assay::graph
