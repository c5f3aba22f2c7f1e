// Decompositions against the operators that they stand for.
#include "autograd/decompositions.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "decomposition_call_log.h"
#include "decomposition_samples.h"

namespace assay::autograd {

namespace {

using c10::IValue;
using Stack = std::vector<IValue>;

std::vector<Sample> all_samples() {
  std::vector<Sample> all;
  for (const SampleTable table : {activation_samples(), loss_samples(), math_samples(),
                                  normalisation_samples(), reduction_samples(), shape_samples()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

c10::OperatorName operator_name(std::string_view op) {
  const std::size_t dot = op.find('.');
  return {std::string(op.substr(0, dot)), dot == op.npos ? "" : std::string(op.substr(dot + 1))};
}

std::vector<at::ScalarType> dtypes_of(const Sample& sample) {
  switch (sample.dtypes) {
    case Dtypes::none:
      return {at::kFloat};
    case Dtypes::bfloat16:
      return {at::kBFloat16};
    case Dtypes::full_floats:
      return {at::kFloat, at::kDouble};
    case Dtypes::numbers:
      return {at::kFloat, at::kDouble, at::kBFloat16, at::kLong};
    default:
      return {at::kFloat, at::kDouble, at::kBFloat16};
  }
}

constexpr Layout kLayouts[] = {Layout::contiguous, Layout::reversed, Layout::channels_last,
                               Layout::gapped};

// What a sample makes of its operator: the call, with defaults for what is not given.
struct Call {
  c10::OperatorHandle op;
  Stack arguments;

  Call(const Sample& sample, at::ScalarType dtype, Layout layout)
      : op(*c10::Dispatcher::singleton().findSchema(operator_name(sample.op))),
        arguments(make_arguments(sample, dtype, layout)) {
    const auto& parameters = op.schema().arguments();
    for (std::size_t i = arguments.size(); i < parameters.size(); ++i) {
      arguments.push_back(parameters[i].default_value().value_or(IValue()));
    }
  }

  // The results; none if the operator refuses its arguments.
  Stack run_operator() const {
    Stack stack = arguments;
    try {
      op.callBoxed(stack);
    } catch (const c10::Error&) {
      return {};
    }
    return stack;
  }

  Stack run_decomposition() const {
    Stack stack = arguments;
    const at::AutoDispatchBelowAutograd below;
    find_decomposition(op.operator_name())->kernel.callBoxed(op, c10::DispatchKeySet(), &stack);
    return stack;
  }
};

std::string text(at::IntArrayRef values) {
  std::ostringstream out;
  out << values;
  return out.str();
}

// Strides, but those of dimensions in which there is no step to make.
std::vector<std::int64_t> strides_that_count(const at::Tensor& tensor) {
  std::vector<std::int64_t> strides;
  for (std::int64_t dim = 0; dim < tensor.dim() && tensor.numel() > 0; ++dim) {
    if (tensor.size(dim) > 1) strides.push_back(tensor.stride(dim));
  }
  return strides;
}

// How far results may be apart, relative to `expected`, in a call with inputs of `dtype`: a few
// units in the last place, because the operators' vectorised kernels round differently. Some
// kernels sum bfloat16 in bfloat16 even where the result is float.
double tolerance(const at::Tensor& expected, at::ScalarType dtype) {
  if (!expected.is_floating_point()) return 0;
  if (dtype == at::kBFloat16) return 1.6e-2;
  return expected.scalar_type() == at::kDouble ? 1e-12 : 3e-6;
}

void expect_same(const at::Tensor& got, const at::Tensor& expected, at::ScalarType dtype) {
  ASSERT_EQ(got.defined(), expected.defined());
  if (!got.defined()) return;
  ASSERT_EQ(got.scalar_type(), expected.scalar_type());
  ASSERT_EQ(text(got.sizes()), text(expected.sizes()));
  EXPECT_EQ(text(strides_that_count(got)), text(strides_that_count(expected)));
  const double relative = tolerance(expected, dtype);
  // Sums are as wrong as their largest terms.
  const double scale = got.is_floating_point() && got.numel() > 0
                           ? std::max(1.0, expected.nan_to_num(0, 0, 0).abs().max().item<double>())
                           : 1;
  EXPECT_TRUE(at::allclose(got, expected, relative, relative * scale, /*equal_nan=*/true))
      << "got\n"
      << got << "\nexpected\n"
      << expected;
}

std::vector<at::Tensor> tensors_in(const Stack& values) {
  std::vector<at::Tensor> tensors;
  for (const IValue& value : values) {
    if (value.isTensor()) tensors.push_back(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
    }
  }
  return tensors;
}

// Which results lie in the memory of which arguments.
std::set<std::pair<std::size_t, std::size_t>> shared_memory(const Stack& results,
                                                            const Stack& arguments) {
  const auto memory = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.storage().data() : nullptr;
  };
  std::set<std::pair<std::size_t, std::size_t>> shared;
  const auto left = tensors_in(results);
  const auto right = tensors_in(arguments);
  for (std::size_t i = 0; i < left.size(); ++i) {
    for (std::size_t j = 0; j < right.size(); ++j) {
      if (memory(left[i]) != nullptr && memory(left[i]) == memory(right[j])) shared.emplace(i, j);
    }
  }
  return shared;
}

void expect_same(const Stack& got, const Stack& expected, at::ScalarType dtype) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    if (expected[i].isTensorList()) {
      const auto got_list = got[i].toTensorVector();
      const auto expected_list = expected[i].toTensorVector();
      ASSERT_EQ(got_list.size(), expected_list.size());
      for (std::size_t j = 0; j < got_list.size(); ++j)
        expect_same(got_list[j], expected_list[j], dtype);
    } else {
      expect_same(got[i].toTensor(), expected[i].toTensor(), dtype);
    }
  }
}

std::set<std::string> words(std::string_view list) {
  std::set<std::string> found;
  std::istringstream in{std::string(list)};
  for (std::string word; in >> word;) found.insert(word.substr(0, word.find(',')));
  return found;
}

std::string joined(const std::set<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + word;
  return line;
}

class DecompositionTest : public testing::TestWithParam<Sample> {};

bool has_channels_last(const Stack& arguments) {
  return std::ranges::any_of(arguments, [](const c10::IValue& argument) {
    return argument.isTensor() && argument.toTensor().defined() &&
           argument.toTensor().suggest_memory_format() != c10::MemoryFormat::Contiguous;
  });
}

TEST_P(DecompositionTest, GivesWhatTheOperatorGives) {
  const Sample& sample = GetParam();
  at::manual_seed(0);  // The inputs are the same in whatever order tests run.
  const Decomposition* row = find_decomposition(operator_name(sample.op));
  ASSERT_NE(row, nullptr) << "no row for " << sample.op;
  for (const at::ScalarType dtype : dtypes_of(sample)) {
    for (const Layout layout : kLayouts) {
      std::ostringstream trace;
      trace << sample.op << "(" << sample.arguments << ") with " << dtype << ", layout "
            << static_cast<int>(layout);
      SCOPED_TRACE(trace.str());
      const Call call(sample, dtype, layout);
      if (row->is_of_floats && !at::isFloatingType(dtype)) continue;
      if (row->is_of_dense && !call.arguments.front().toTensor().is_non_overlapping_and_dense()) {
        EXPECT_FALSE(can_decompose(*row, call.arguments));
        continue;
      }
      if (row->is_of_planes && has_channels_last(call.arguments)) {
        EXPECT_FALSE(can_decompose(*row, call.arguments));
        continue;
      }
      EXPECT_TRUE(can_decompose(*row, call.arguments));
      const Stack expected = call.run_operator();
      // Some kernels refuse unusual layouts; then there is nothing to compare.
      if (!expected.empty()) {
        const Stack got = call.run_decomposition();
        expect_same(got, expected, dtype);
        EXPECT_EQ(shared_memory(got, call.arguments), shared_memory(expected, call.arguments));
      }
      EXPECT_TRUE(!expected.empty() || layout != Layout::contiguous);
    }
  }
}

std::string test_name(const testing::TestParamInfo<Sample>& info) {
  std::string name = std::to_string(info.index) + "_" + std::string(info.param.op.substr(6));
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Samples, DecompositionTest, testing::ValuesIn(all_samples()), test_name);

TEST(DecompositionTableTest, EveryRowHasASample) {
  std::set<std::string_view> sampled;
  for (const Sample& sample : all_samples()) sampled.insert(sample.op);
  for (const Decomposition& row : decompositions()) {
    EXPECT_TRUE(sampled.contains(row.op)) << row.op;
  }
}

TEST(DecompositionTableTest, EveryRowIsAnOperatorThatComputesOnly) {
  for (const Decomposition& row : decompositions()) {
    const auto op = c10::Dispatcher::singleton().findSchema(operator_name(row.op));
    ASSERT_TRUE(op.has_value()) << row.op;
    EXPECT_FALSE(op->schema().is_mutable()) << row.op;
  }
}

// A row says all that it calls and nothing else; it calls no operator that has a row itself, so
// that one step is enough, and none that changes its arguments.
TEST(DecompositionTableTest, EveryRowCallsWhatItSays) {
  std::map<std::string_view, std::set<std::string>> called;
  for (const Sample& sample : all_samples()) {
    for (const at::ScalarType dtype : dtypes_of(sample)) {
      for (const Layout layout : kLayouts) {
        const Call call(sample, dtype, layout);
        CallLog log;
        call.run_decomposition();
        for (const c10::OperatorName& name : log.calls) {
          called[sample.op].insert(name.name.substr(name.name.find("::") + 2));
          EXPECT_EQ(find_decomposition(name), nullptr) << sample.op << " calls " << name;
          const auto op = c10::Dispatcher::singleton().findSchema(name);
          EXPECT_FALSE(op->schema().is_mutable()) << sample.op << " calls " << name;
        }
      }
    }
  }
  for (const Decomposition& row : decompositions()) {
    EXPECT_EQ(joined(words(row.into)), joined(called[row.op])) << row.op;
  }
}

TEST(DecompositionTableTest, IsSortedAndFindsItsRows) {
  const auto rows = decompositions();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const auto& a, const auto& b) { return a.op < b.op; }));
  for (const Decomposition& row : rows) {
    EXPECT_EQ(find_decomposition(operator_name(row.op)), &row) << row.op;
  }
}

TEST(DecompositionTableTest, DoesNotFindOtherOperators) {
  for (const char* op :
       {"aten::mm", "aten::var", "aten::var.dim", "aten::native_dropout", "x::y"}) {
    EXPECT_EQ(find_decomposition(operator_name(op)), nullptr) << op;
  }
}

TEST(DecompositionTableTest, LeavesUnusualTensorsAlone) {
  const at::Tensor dense = at::ones({2, 2});
  const at::Tensor complex = at::complex(dense, dense);
  Decomposition row;
  EXPECT_TRUE(can_decompose(row, Stack{dense, 1, IValue(), at::Tensor()}));
  EXPECT_TRUE(can_decompose(row, Stack{std::vector<at::Tensor>{dense, dense}}));
  EXPECT_FALSE(can_decompose(row, Stack{1, complex}));
  EXPECT_FALSE(can_decompose(row, Stack{std::vector<at::Tensor>{dense, complex}}));
  EXPECT_FALSE(can_decompose(row, Stack{dense.to_sparse()}));
  c10::List<std::optional<at::Tensor>> holes;
  holes.push_back(std::nullopt);
  holes.push_back(complex);
  EXPECT_FALSE(can_decompose(row, Stack{dense, holes}));
  EXPECT_TRUE(can_decompose(row, Stack{dense.to(at::kLong)}));
  row.is_of_floats = true;
  EXPECT_FALSE(can_decompose(row, Stack{dense.to(at::kLong)}));
  EXPECT_TRUE(can_decompose(row, Stack{dense, dense.to(at::kLong)}));
}

}  // namespace

}  // namespace assay::autograd
