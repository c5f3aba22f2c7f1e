#include "graph/print.h"

#include <gtest/gtest.h>

#include <limits>

#include "graph/parse.h"
#include "graph/python_strings.h"

namespace assay::graph {
namespace {

TEST(Print, LooksLikeFx) {
  Graph graph;
  Node& x = graph.placeholder("primals_1");
  Node& permuted = graph.call_function("torch.ops.aten.permute.default", {&x, List{{1, 0}}});
  Node& sum =
      graph.call_function("torch.ops.aten.add.Tensor", {&permuted, &permuted}, {{"alpha", 0.5}});
  graph.set_output(Tuple{{&sum}});
  EXPECT_EQ(print(graph),
            "class Repro(torch.nn.Module):\n"
            "    def __init__(self) -> None:\n"
            "        super().__init__()\n"
            "\n"
            "    def forward(self, primals_1):\n"
            "        permute = torch.ops.aten.permute.default(primals_1, [1, 0]);  "
            "primals_1 = None\n"
            "        add = torch.ops.aten.add.Tensor(permute, permute, alpha = 0.5);  "
            "permute = None\n"
            "        return (add,)\n");
}

TEST(Print, FloatsAsPythonWritesThem) {
  const auto text = python::float_text;
  EXPECT_EQ(text(1e-05), "1e-05");
  EXPECT_EQ(text(0.0001), "0.0001");
  EXPECT_EQ(text(3.0), "3.0");
  EXPECT_EQ(text(-0.0), "-0.0");
  EXPECT_EQ(text(1e16), "1e+16");
  EXPECT_EQ(text(123456789012345.0), "123456789012345.0");
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(5e-324), "5e-324");
  EXPECT_EQ(text(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Print, StringsAreQuoted) {
  EXPECT_EQ(python::quote("it's"), "\"it's\"");
  EXPECT_EQ(python::quote("a\"b'c"), "'a\"b\\'c'");
  EXPECT_EQ(python::quote("line\nend\x01"), "'line\\nend\\x01'");
}

TEST(Print, AUsersFileNameCannotBreakOutOfItsComment) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& relu = graph.call_function("torch.relu", {&x});
  relu.meta.stack = {{"evil\nimport os", 1, "f", "code\nimport os"}};
  graph.set_output(&relu);
  EXPECT_EQ(print(graph).find("\nimport os"), std::string::npos);
}

// Everything that has a spelling of its own reads back as it was.
TEST(Print, EveryArgumentReadsBack) {
  Graph graph;
  Node& x = graph.placeholder("x");
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<Argument> arguments = {None{},
                                           true,
                                           false,
                                           0,
                                           -1,
                                           INT64_MIN,
                                           INT64_MAX,
                                           1.5,
                                           -0.0,
                                           inf,
                                           -inf,
                                           std::numeric_limits<double>::quiet_NaN(),
                                           1e300,
                                           std::complex<double>(1, -2),
                                           std::complex<double>(-0.0, inf),
                                           "text with 'quotes' and \\",
                                           "",
                                           "ünï",
                                           c10::ScalarType::Float,
                                           c10::ScalarType::BFloat16,
                                           c10::Device(c10::DeviceType::CPU),
                                           c10::Device(c10::DeviceType::CUDA, 1),
                                           c10::kStrided,
                                           c10::MemoryFormat::ChannelsLast,
                                           Ellipsis{},
                                           QualifiedName{"torch.per_tensor_affine"},
                                           &x,
                                           List{{}},
                                           List{{1, &x, None{}}},
                                           Tuple{{}},
                                           Tuple{{1}},
                                           Tuple{{1, Tuple{{&x}}}},
                                           Slice{{1, None{}, &x}},
                                           Dict{{"a", "b c"}, {1, List{{&x}}}}};
  Node& call = graph.call_function("torch.some_function", arguments,
                                   {{"first", Tuple{{1, 2}}}, {"second", &x}});
  graph.set_output(Dict{{"result", "nothing"}, {&call, None{}}});
  const std::string text = print(graph);
  const auto read = parse(text);
  EXPECT_EQ(difference(graph, *read), "") << text;
}

TEST(Print, OperatorsOfPythonReadBack) {
  Graph graph;
  Node& x = graph.placeholder("x");
  Node& sum = graph.call_function("operator.add", {&x, -2});
  Node& power = graph.call_function("operator.pow", {-2, &sum});
  Node& negated = graph.call_function("operator.neg", {&power});
  Node& compared = graph.call_function("operator.le", {&negated, &x});
  Node& transposed = graph.call_function("getattr", {&compared, "T"});
  Node& item = graph.call_function(
      "operator.getitem", {&transposed, Tuple{{Slice{{None{}, None{}, None{}}}, Ellipsis{}, 0}}});
  Node& added = graph.call_function("operator.iadd", {&item, 1});
  Node& set = graph.call_function("operator.setitem", {&added, 0, 2.5});
  Node& odd = graph.call_function("operator.add", {1, 2, 3});
  graph.set_output(Tuple{{&set, &odd}});
  const std::string text = print(graph);
  EXPECT_NE(text.find("(-2) ** add"), std::string::npos) << text;
  EXPECT_NE(text.find("getitem += 1;  iadd = getitem"), std::string::npos) << text;
  EXPECT_NE(text.find("iadd[0] = 2.5;  setitem = iadd"), std::string::npos) << text;
  EXPECT_EQ(difference(graph, *parse(text)), "") << text;
}

}  // namespace
}  // namespace assay::graph
