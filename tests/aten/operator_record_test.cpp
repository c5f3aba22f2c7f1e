// One record per operator: held against the schemas and tags of everything that is registered.
#include "aten/operator_record.h"

#include <ATen/core/enum_tag.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <algorithm>
#include <set>
#include <thread>

#include "aten/operator_exceptions.h"
#include "aten/operators.h"

namespace assay::aten {
namespace {

std::vector<c10::OperatorHandle> all_operators() {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::vector<c10::OperatorHandle> found;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (const auto op = dispatcher.findSchema(name)) found.push_back(*op);
  }
  EXPECT_GT(found.size(), 2000U);
  return found;
}

// The operators that the table gives one of these facts.
bool is_listed(const c10::OperatorHandle& op, std::initializer_list<Fact> facts) {
  const std::string& name = op.operator_name().name;
  const std::string& overload = op.operator_name().overload_name;
  const std::string full = name + "." + (overload.empty() ? "default" : overload);
  return std::ranges::any_of(operator_exceptions(), [&](const OperatorException& row) {
    return std::ranges::find(facts, row.fact) != facts.end() &&
           std::ranges::any_of(row.operators, [&](std::string_view listed) {
             return listed == name || listed == full;
           });
  });
}

bool is_write(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

const OperatorRecord& record(const std::string& target, graph::Op kind = graph::Op::call_function) {
  graph::Graph graph;
  return operator_record(kind == graph::Op::call_method ? graph.call_method(target, {})
                                                        : graph.call_function(target, {}));
}

TEST(OperatorRecord, WritesWhatTheSchemaDeclaresOrTheTableAdds) {
  for (const c10::OperatorHandle& op : all_operators()) {
    const OperatorRecord& facts = operator_record(op);
    const auto& arguments = op.schema().arguments();
    const bool keeps_statistics = is_listed(op, {Fact::writes_statistics});
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool is_statistic =
          arguments[i].name() == "running_mean" || arguments[i].name() == "running_var";
      EXPECT_EQ(facts.writes_argument(i),
                is_write(arguments[i]) || (keeps_statistics && is_statistic))
          << toString(op.schema());
    }
    EXPECT_EQ(facts.writes_undeclared, keeps_statistics) << toString(op.schema());
  }
}

// A new operator with running statistics must be looked at: does it write to them?
TEST(OperatorRecord, EveryOperatorWithRunningStatisticsIsAccountedFor) {
  for (const c10::OperatorHandle& op : all_operators()) {
    const std::string& name = op.operator_name().name;
    const auto position = op.schema().argumentIndexWithName("running_mean");
    if (!position || is_write(op.schema().arguments()[static_cast<std::size_t>(*position)])) {
      continue;
    }
    const bool only_reads = name.find("backward") != std::string::npos ||
                            name.find("functional") != std::string::npos ||
                            name.ends_with("_no_training") || name.ends_with("_no_update");
    EXPECT_NE(only_reads, operator_record(op).writes_undeclared) << toString(op.schema());
  }
}

TEST(OperatorRecord, AgreesWithTags) {
  for (const c10::OperatorHandle& op : all_operators()) {
    const OperatorRecord& facts = operator_record(op);
    const std::string text = toString(op.schema());
    EXPECT_EQ(facts.is_random,
              op.hasTag(at::Tag::nondeterministic_seeded) || is_listed(op, {Fact::random}))
        << text;
    EXPECT_EQ(facts.reads_values,
              op.hasTag(at::Tag::data_dependent_output) || is_listed(op, {Fact::reads_values}))
        << text;
    if (!is_listed(op, {Fact::sizes_from_mask, Fact::sizes_if_unsized})) {
      EXPECT_EQ(facts.sizes_from_values == SizesFromValues::always,
                op.hasTag(at::Tag::dynamic_output_shape))
          << text;
    }
    const bool has_own_work =
        is_listed(op, {Fact::view, Fact::maybe_view, Fact::pointwise, Fact::gather, Fact::join,
                       Fact::reduction, Fact::expensive});
    if (!has_own_work && !facts.declares_view && !op.operator_name().name.starts_with("prims::")) {
      const Work tagged = op.hasTag(at::Tag::reduction)   ? Work::reduction
                          : op.hasTag(at::Tag::pointwise) ? Work::pointwise
                                                          : Work::expensive;
      EXPECT_EQ(facts.work, tagged) << text;
    }
  }
}

TEST(OperatorRecord, PureOperatorsOnlyCompute) {
  for (const c10::OperatorHandle& op : all_operators()) {
    const OperatorRecord& facts = operator_record(op);
    const bool does_more = op.schema().returns().empty() || !facts.writes.empty() ||
                           facts.is_random || is_listed(op, {Fact::has_effect, Fact::opens_files});
    EXPECT_EQ(facts.is_pure, !does_more) << toString(op.schema());
    EXPECT_TRUE(facts.is_known);
  }
}

TEST(OperatorRecord, ViewsAreThoseThatTheSchemaDeclaresAndTheTableAdds) {
  for (const c10::OperatorHandle& op : all_operators()) {
    const OperatorRecord& facts = operator_record(op);
    const std::string text = toString(op.schema());
    const auto& returns = op.schema().returns();
    const bool is_declared =
        !returns.empty() && returns[0].alias_info() != nullptr && !is_write(returns[0]);
    EXPECT_EQ(facts.declares_view, is_declared) << text;
    EXPECT_EQ(facts.view != View::never, is_declared || is_listed(op, {Fact::view})) << text;
    EXPECT_EQ(facts.view == View::maybe, is_listed(op, {Fact::maybe_view})) << text;
    if (is_declared) {
      EXPECT_TRUE(op.schema().may_alias({c10::SchemaArgType::output, 0},
                                        {c10::SchemaArgType::input, facts.view_of}) ||
                  op.schema().may_contain_alias({c10::SchemaArgType::output, 0},
                                                {c10::SchemaArgType::input, facts.view_of}))
          << text;
    }
    if (facts.keeps_elements) {
      EXPECT_NE(facts.view, View::never) << text;
    }
  }
}

TEST(OperatorRecord, InPlaceOperatorsReturnTheirFirstArgument) {
  for (const c10::OperatorHandle& op : all_operators()) {
    const OperatorRecord& facts = operator_record(op);
    if (op.operator_name().name.starts_with("aten::") && op.hasTag(at::Tag::inplace) &&
        facts.writes.size() == 1) {
      EXPECT_TRUE(facts.is_in_place) << toString(op.schema());
    }
    if (facts.is_in_place) {
      EXPECT_TRUE(is_write(op.schema().arguments()[0]));
    }
  }
  EXPECT_TRUE(record("torch.ops.aten.add_.Tensor").is_in_place);
  EXPECT_FALSE(record("torch.ops.aten.add.out").is_in_place);
}

TEST(OperatorRecord, EveryAllocationIsUninitialized) {
  for (const c10::OperatorHandle& op : all_operators()) {
    const std::string& name = op.operator_name().name;
    const bool allocates = name.starts_with("aten::empty") || name.starts_with("aten::_empty") ||
                           name.starts_with("aten::new_empty") || name.starts_with("prims::empty");
    EXPECT_EQ(operator_record(op).is_uninitialized, allocates) << name;
  }
}

// Prims are defined in Python: in a process without it their rows name nothing that is registered.
TEST(OperatorRecord, EveryExceptionNamesAnOperatorAndHasAReason) {
  std::set<std::string> known;
  for (const c10::OperatorHandle& op : all_operators()) {
    const std::string& overload = op.operator_name().overload_name;
    known.insert(op.operator_name().name);
    known.insert(op.operator_name().name + "." + (overload.empty() ? "default" : overload));
  }
  std::set<std::pair<Fact, std::string_view>> seen;
  for (const OperatorException& row : operator_exceptions()) {
    EXPECT_FALSE(row.reason.empty());
    EXPECT_FALSE(row.operators.empty());
    for (std::string_view op : row.operators) {
      EXPECT_TRUE(seen.emplace(row.fact, op).second) << op << " is listed twice";
      EXPECT_TRUE(op.starts_with("prims::") || known.contains(std::string(op))) << op;
    }
  }
}

TEST(OperatorRecord, KnowsPrimsWithoutPython) {
  const OperatorRecord& sum = record("torch.ops.prims.sum.default");
  EXPECT_TRUE(sum.is_known && sum.is_pure);
  EXPECT_EQ(sum.work, Work::reduction);
  EXPECT_EQ(record("torch.ops.prims.mul.default").work, Work::pointwise);
  EXPECT_EQ(record("torch.ops.prims.transpose.default").view, View::always);
  EXPECT_TRUE(record("torch.ops.prims.inductor_random.default").is_random);
  EXPECT_FALSE(record("torch.ops.prims.inductor_random.default").is_pure);
  EXPECT_TRUE(record("torch.ops.prims.copy_to.default").may_write());
  EXPECT_TRUE(record("torch.ops.prims.mystery_.default").may_write());
}

TEST(OperatorRecord, KnowsPythonsOperators) {
  EXPECT_TRUE(record("operator.add").is_pure);
  EXPECT_TRUE(record("operator.getitem").is_pure);
  EXPECT_TRUE(record("operator.iadd").may_write());
  EXPECT_FALSE(record("operator.iadd").is_pure);
}

TEST(OperatorRecord, SaysOfTorchFunctionsWhatHoldsForSomeOverload) {
  EXPECT_TRUE(record("torch.randn").is_random);
  EXPECT_TRUE(record("torch.randn").draws_floats);
  EXPECT_TRUE(record("torch.empty_like").is_uninitialized);
  EXPECT_TRUE(record("new_empty", graph::Op::call_method).is_uninitialized);
  EXPECT_TRUE(record("torch.zeros").is_float_factory);
  EXPECT_FALSE(record("torch.full").is_float_factory);
  EXPECT_FALSE(record("torch.relu").is_random);
  // Nothing tells what Python does around the operator.
  EXPECT_FALSE(record("torch.relu").is_pure);
  EXPECT_TRUE(record("torch.relu").may_write());
  EXPECT_TRUE(record("mystery.rand").may_write());
  EXPECT_FALSE(record("mystery.rand").is_random);
}

TEST(OperatorRecord, FollowsOperatorsThatComeAndGo) {
  const std::string target = "torch.ops.assay_late.shift.default";
  const auto define = [](const char* schema) {
    return c10::Dispatcher::singleton().registerDef(torch::jit::parseSchema(schema), "a test");
  };
  EXPECT_FALSE(record(target).is_known);
  {
    const auto pure = define("assay_late::shift(Tensor x) -> Tensor");
    EXPECT_TRUE(record(target).is_pure);
    EXPECT_TRUE(operator_record(*find_operator(target)).is_pure);
  }
  EXPECT_FALSE(record(target).is_known);
  const auto writing = define("assay_late::shift(Tensor(a!) x) -> Tensor");
  EXPECT_FALSE(record(target).is_pure);
  EXPECT_TRUE(record(target).writes_argument(0));
}

TEST(OperatorRecord, MayBeAskedWhileOperatorsAreRegistered) {
  std::atomic<bool> is_done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!is_done) {
        EXPECT_TRUE(record("torch.ops.aten.relu.default").is_pure);
        EXPECT_TRUE(record("torch.ops.aten.bernoulli.default").is_random);
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const auto op = c10::Dispatcher::singleton().registerDef(
        torch::jit::parseSchema("assay_late::blink(Tensor x) -> Tensor"), "a test");
    EXPECT_TRUE(record("torch.ops.assay_late.blink.default").is_pure);
  }
  is_done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_FALSE(record("torch.ops.assay_late.blink.default").is_known);
}

TEST(OperatorRecord, IsTheSameObjectForEqualTargets) {
  EXPECT_EQ(&record("torch.ops.aten.relu.default"), &record("torch.ops.aten.relu.default"));
  EXPECT_EQ(graph::Target("torch.relu").id(), graph::Target(std::string("torch.") + "relu").id());
  EXPECT_NE(graph::Target("torch.relu").id(), graph::Target("torch.relu_").id());
}

}  // namespace
}  // namespace assay::aten
