#include "aten/operator_record.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "aten/operator_exceptions.h"
#include "aten/operators.h"
#include "graph/python_operators.h"

namespace assay::aten {

namespace {

constexpr std::string_view kPrims = "torch.ops.prims.";

bool is_write(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// ---- what the schema and the tags say ----

// Whether a result may be in the memory of an argument: `Tensor(a) -> Tensor(a)`, or for an item of
// a list `Tensor(a -> *) -> Tensor(a)[]`.
bool shares_memory(const c10::AliasInfo& result, const c10::AliasInfo& argument) {
  return std::ranges::any_of(
             result.beforeSets(),
             [&](const c10::Symbol& set) { return argument.beforeSets().contains(set); }) ||
         std::ranges::any_of(result.containedTypes(), [&](const c10::AliasInfo& item) {
           return shares_memory(item, argument);
         });
}

void read_view(const c10::FunctionSchema& schema, OperatorRecord& record) {
  if (schema.returns().empty()) return;
  const c10::AliasInfo* result = schema.returns()[0].alias_info();
  if (result == nullptr || result->isWrite()) return;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* argument = schema.arguments()[i].alias_info();
    if (argument == nullptr || !shares_memory(*result, *argument)) continue;
    record.view = View::always;
    record.view_of = i;
    record.declares_view = true;
    return;
  }
}

void read_schema(const c10::OperatorHandle& op, OperatorRecord& record) {
  const c10::FunctionSchema& schema = op.schema();
  record.is_known = true;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    if (is_write(schema.arguments()[i])) record.writes.push_back(i);
  }
  record.is_in_place = schema.name().ends_with('_') && record.writes == std::vector<std::size_t>{0};
  read_view(schema, record);
  record.returns_tensors = std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    const c10::Type& type = *result.type();
    return type.isSubtypeOf(*c10::TensorType::get()) || type.castRaw<c10::ListType>() != nullptr;
  });
  record.returns_one_tensor = schema.returns().size() == 1 &&
                              schema.returns()[0].type()->kind() == c10::TypeKind::TensorType;
}

void read_tags(const c10::OperatorHandle& op, OperatorRecord& record) {
  record.is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  record.reads_values = op.hasTag(at::Tag::data_dependent_output);
  if (op.hasTag(at::Tag::dynamic_output_shape)) {
    record.sizes_from_values = SizesFromValues::always;
  }
  if (record.view == View::always) {
    record.work = Work::none;
  } else if (op.hasTag(at::Tag::reduction)) {
    record.work = Work::reduction;
  } else if (op.hasTag(at::Tag::pointwise)) {
    record.work = Work::pointwise;
  }
}

// ---- what they do not say ----

void add_write(OperatorRecord& record, std::size_t position) {
  if (record.writes_argument(position)) return;
  record.writes.push_back(position);
  std::ranges::sort(record.writes);
  record.writes_undeclared = true;
}

// Returns whether the fact says that the operator does more than compute. `schema` is nullptr for a
// prim that is not registered.
bool apply(Fact fact, const c10::FunctionSchema* schema, OperatorRecord& record) {
  switch (fact) {
    case Fact::writes_statistics:
      for (const char* name : {"running_mean", "running_var"}) {
        const auto position =
            schema == nullptr ? std::nullopt : schema->argumentIndexWithName(name);
        if (position) add_write(record, static_cast<std::size_t>(*position));
      }
      return true;
    case Fact::writes_first:
      add_write(record, 0);
      return true;
    case Fact::has_effect:
      return true;
    case Fact::random:
      record.is_random = true;
      break;
    case Fact::draws_floats:
      record.draws_floats = true;
      break;
    case Fact::view:
      record.view = View::always;
      record.work = Work::none;
      break;
    case Fact::maybe_view:
      record.view = View::maybe;
      record.work = Work::pointwise;
      break;
    case Fact::keeps_elements:
      record.keeps_elements = true;
      break;
    case Fact::pointwise:
      record.work = Work::pointwise;
      break;
    case Fact::gather:
      record.work = Work::gather;
      break;
    case Fact::join:
      record.work = Work::join;
      break;
    case Fact::reduction:
      record.work = Work::reduction;
      break;
    case Fact::expensive:
      record.work = Work::expensive;
      break;
    case Fact::uninitialized:
      record.is_uninitialized = true;
      break;
    case Fact::float_factory:
      record.is_float_factory = true;
      break;
    case Fact::reads_values:
      record.reads_values = true;
      break;
    case Fact::sizes_from_mask:
      record.sizes_from_values = SizesFromValues::if_masked;
      break;
    case Fact::sizes_if_unsized:
      record.sizes_from_values = SizesFromValues::if_unsized;
      break;
    case Fact::opens_files:
      record.opens_files = true;
      return true;
  }
  return false;
}

struct Hash : std::hash<std::string_view> {
  using is_transparent = void;
};
using FactsByName = std::unordered_map<std::string, std::vector<Fact>, Hash, std::equal_to<>>;

const FactsByName& facts_by_name() {
  static const FactsByName facts = [] {
    FactsByName made;
    for (const OperatorException& row : operator_exceptions()) {
      for (std::string_view op : row.operators) made[std::string(op)].push_back(row.fact);
    }
    return made;
  }();
  return facts;
}

// `name` is `aten::view`, `overload` is `default`.
bool apply_exceptions(const std::string& name, const std::string& overload,
                      const c10::FunctionSchema* schema, OperatorRecord& record) {
  bool has_effect = false;
  for (const std::string& row : {name, name + "." + overload}) {
    const auto found = facts_by_name().find(row);
    if (found == facts_by_name().end()) continue;
    for (Fact fact : found->second) has_effect |= apply(fact, schema, record);
  }
  return has_effect;
}

OperatorRecord record_of_operator(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = op.operator_name().name;
  const std::string& overload = op.operator_name().overload_name;
  OperatorRecord record;
  read_schema(op, record);
  read_tags(op, record);
  if (name.starts_with("prims::") && record.work == Work::expensive) record.work = Work::pointwise;
  const bool has_effect =
      apply_exceptions(name, overload.empty() ? "default" : overload, &schema, record);
  record.is_pure =
      !schema.returns().empty() && record.writes.empty() && !record.is_random && !has_effect;
  return record;
}

// PyTorch defines prims in Python: the dispatcher of a process without Python does not know them.
OperatorRecord record_of_prim(const graph::Target& target) {
  OperatorRecord record;
  record.is_known = record.returns_tensors = true;
  record.work = Work::pointwise;
  const std::string name(target.base_name());
  bool has_effect = apply_exceptions("prims::" + name, "default", nullptr, record);
  if (name.ends_with('_')) has_effect |= apply(Fact::writes_first, nullptr, record);
  record.is_pure = !record.is_random && !has_effect;
  return record;
}

// Python's operators compute, except the in-place ones.
std::optional<OperatorRecord> record_of_python(const std::string& name) {
  OperatorRecord record;
  record.is_known = record.is_pure = true;
  record.work = Work::pointwise;
  if (name == "getattr") return record;
  if (name == "operator.getitem") {
    record.view = View::maybe;  // of a tensor; an item of a tuple is that item
    return record;
  }
  const auto* found = graph::operator_of_function(name);
  if (found == nullptr) return std::nullopt;
  if (found->form == graph::PythonOperator::Form::in_place) {
    record.is_pure = false;
    record.is_in_place = true;
    record.writes = {0};
  }
  return record;
}

// Which overload is called is not known, nor what Python does around it.
OperatorRecord record_of_overloads(const std::vector<c10::OperatorHandle>& overloads) {
  OperatorRecord record;
  for (const c10::OperatorHandle& op : overloads) {
    const OperatorRecord one = record_of_operator(op);
    record.is_random |= one.is_random;
    record.draws_floats |= one.draws_floats;
    record.is_uninitialized |= one.is_uninitialized;
    record.is_float_factory |= one.is_float_factory;
    record.reads_values |= one.reads_values;
    record.opens_files |= one.opens_files;
    record.sizes_from_values = std::max(record.sizes_from_values, one.sizes_from_values);
  }
  return record;
}

OperatorRecord record_of_target(const graph::Target& target, bool is_method) {
  if (!is_method) {
    if (const auto op = find_operator(target)) return record_of_operator(*op);
    if (target.name().starts_with(kPrims)) return record_of_prim(target);
    if (const auto python = record_of_python(target.name())) return *python;
    if (!target.name().starts_with("torch.")) return {};
  }
  return record_of_overloads(overloads("aten::" + std::string(target.base_name())));
}

// ---- the cache ----

class RecordCache {
 public:
  // Operators come and go until the very end of the process, so it is never destroyed.
  static RecordCache& instance() {
    static RecordCache& cache = *new RecordCache;
    return cache;
  }

  const OperatorRecord& find(const c10::OperatorHandle& op) {
    return find(operators_, op, [&] { return record_of_operator(op); });
  }
  const OperatorRecord& find(const graph::Target& target, bool is_method) {
    return find(is_method ? methods_ : functions_, target.id(),
                [&] { return record_of_target(target, is_method); });
  }

 private:
  // Called with the dispatcher's lock held: the cache's own is always the inner one.
  struct Listener : c10::OpRegistrationListener {
    explicit Listener(RecordCache& owner) : cache(owner) {}
    void onOperatorRegistered(const c10::OperatorHandle&) override { cache.clear(); }
    void onOperatorDeregistered(const c10::OperatorHandle&) override { cache.clear(); }
    RecordCache& cache;
  };

  RecordCache()
      : listening_(c10::Dispatcher::singleton().addRegistrationListener(
            std::make_unique<Listener>(*this))) {}

  void clear() {
    const std::unique_lock lock(mutex_);
    ++generation_;
    operators_.clear();
    functions_.clear();
    methods_.clear();
  }

  template <typename Map, typename Key, typename Make>
  const OperatorRecord& find(Map& map, const Key& key, const Make& make) {
    std::uint64_t generation = 0;
    {
      const std::shared_lock lock(mutex_);
      const auto found = map.find(key);
      if (found != map.end()) return *found->second;
      generation = generation_;
    }
    OperatorRecord made = make();  // asks the dispatcher, so without the lock
    const std::unique_lock lock(mutex_);
    const auto found = map.find(key);
    if (found != map.end()) return *found->second;
    const OperatorRecord& kept = records_.emplace_back(std::move(made));
    // Operators may have changed meanwhile; then the next question makes the record anew.
    if (generation == generation_) map.emplace(key, &kept);
    return kept;
  }

  std::shared_mutex mutex_;
  std::uint64_t generation_ = 0;
  std::unordered_map<c10::OperatorHandle, const OperatorRecord*> operators_;
  std::unordered_map<const void*, const OperatorRecord*> functions_;  // by Target::id()
  std::unordered_map<const void*, const OperatorRecord*> methods_;
  std::deque<OperatorRecord> records_;     // never shrinks: callers hold references
  c10::RegistrationHandleRAII listening_;  // last: at once it tells all operators there are
};

}  // namespace

bool OperatorRecord::writes_argument(std::size_t position) const {
  return std::ranges::find(writes, position) != writes.end();
}

const OperatorRecord& operator_record(const c10::OperatorHandle& op) {
  return RecordCache::instance().find(op);
}

const OperatorRecord& operator_record(const graph::Node& node) {
  static const OperatorRecord cautious;
  if (node.op() != graph::Op::call_function && node.op() != graph::Op::call_method) return cautious;
  return RecordCache::instance().find(node.target(), node.op() == graph::Op::call_method);
}

}  // namespace assay::aten
