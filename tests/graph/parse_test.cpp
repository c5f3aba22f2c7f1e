#include "graph/parse.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "graph/print.h"

namespace assay::graph {
namespace {

constexpr const char* kHead = "class Repro(torch.nn.Module):\n    def forward(self, x, y):\n";

std::unique_ptr<Graph> parse_body(const std::string& body) { return parse(kHead + body, "f.py"); }

// The message for a body that must be refused.
std::string refusal(const std::string& text) {
  try {
    parse(text, "f.py");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}
std::string body_refusal(const std::string& body) { return refusal(kHead + body); }

TEST(Parse, ATorchLevelGraph) {
  auto graph = parse(
      "class Repro(torch.nn.Module):\n"
      "    def __init__(self) -> None:\n"
      "        super().__init__()\n"
      "    def forward(self, L_x_ : torch.Tensor, L_w_ : torch.nn.parameter.Parameter):\n"
      "        l_x_ = L_x_\n"
      "        l_w_ = L_w_\n"
      "        linear = torch._C._nn.linear(l_x_, l_w_, None);  l_x_ = l_w_ = None\n"
      "        view = linear.view(-1, 4);  linear = None\n"
      "        y = view[(slice(None, None, None), slice(1, 3, None))];  view = None\n"
      "        z = 1.0 - y\n"
      "        return (z,)\n");
  std::vector<std::string> seen;
  for (const Node& node : graph->nodes()) {
    seen.push_back(std::string(to_string(node.op())) + " " + node.name() + " " +
                   node.target().name());
  }
  EXPECT_EQ(seen,
            (std::vector<std::string>{"placeholder l_x_ L_x_", "placeholder l_w_ L_w_",
                                      "call_function linear torch._C._nn.linear",
                                      "call_method view view", "call_function y operator.getitem",
                                      "call_function z operator.sub", "output output output"}));
}

TEST(Parse, NamesMayBeSpreadOverLines) {
  auto graph =
      parse_body("        a = (torch . nn .\n             functional.relu(x))\n        return a\n");
  EXPECT_EQ(graph->find("a")->target().name(), "torch.nn.functional.relu");
}

TEST(Parse, NestedCallsBecomeNodes) {
  auto graph = parse_body("        return torch.relu(x + y).sum()\n");
  EXPECT_EQ(graph->size(), 6U);
  EXPECT_EQ(print_call(*graph->output()->args()[0].node()), "relu.sum()");
}

TEST(Parse, StacksAndAnnotationsAreRead) {
  auto graph = parse_body(
      "        # File: my dir/model.py:12 in forward, code: a = f(x), code: b\n"
      "        a: \"f32[4][1]cpu\" = torch.sin(x)\n"
      "        b = torch.cos(a)\n"
      "        # No stacktrace found for following nodes\n"
      "        c = torch.tan(b)\n"
      "        return c\n");
  const Node& b = *graph->find("b");
  ASSERT_EQ(b.meta.stack.size(), 1U) << "inherited from the comment above";
  EXPECT_EQ(b.meta.stack[0], (StackFrame{"my dir/model.py", 12, "forward", "a = f(x), code: b"}));
  EXPECT_TRUE(graph->find("a")->meta.value.tensor());
  EXPECT_TRUE(graph->find("c")->meta.stack.empty());
}

TEST(Parse, NestedClassesAreSubgraphs) {
  auto graph = parse(
      "class <lambda>(torch.nn.Module):\n"
      "    def forward(self, x):\n"
      "        body = self.body\n"
      "        r = torch.ops.higher_order.cond(x, body, body, (x,))\n"
      "        return r\n"
      "    class body(torch.nn.Module):\n"
      "        def forward(self, a):\n"
      "            return (torch.sin(a),)\n");
  ASSERT_NE(graph->attribute("body"), nullptr);
  ASSERT_NE(graph->attribute("body")->subgraph(), nullptr);
  EXPECT_EQ(difference(*graph, *parse(print(*graph))), "");
}

TEST(Parse, AttributesOfTheModule) {
  auto graph = parse(
      "class Repro(torch.nn.Module):\n"
      "    def __init__(self) -> None:\n"
      "        super().__init__()\n"
      "        self.layer = Linear(in_features=4, out_features=2, bias=True)\n"
      "        self.true_graph_0 = <lambda>()\n"
      "        self.register_buffer('c', tensor([0.5000, 1.0000], dtype=torch.float64))\n"
      "        self.register_buffer('big', torch.randint(1, size=[3, 4], dtype=torch.int64))\n"
      "        self.w = torch.nn.Parameter(torch.randn([3, 4], dtype=torch.float32))\n"
      "    def forward(self, x):\n"
      "        c = self.c\n"
      "        l = self.layer(x)\n"
      "        return (c, l)\n");
  EXPECT_EQ(graph->attributes().size(), 5U);
  const auto& c = std::get<TensorAttribute>(graph->attribute("c")->value);
  EXPECT_EQ(c.meta.dtype, c10::ScalarType::Double);
  EXPECT_EQ(c.meta.sizes, std::vector<SizeExpr>{2});
  EXPECT_TRUE(std::get<TensorAttribute>(graph->attribute("w")->value).meta.requires_grad);
  EXPECT_EQ(difference(*graph, *parse(print(*graph))), "");
}

TEST(Parse, ADeviceOfAConstantIsKept) {
  auto graph = parse(
      "class Repro(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.register_buffer('c', tensor([1.], device='cuda:0'))\n"
      "    def forward(self):\n"
      "        c = self.c\n"
      "        return c\n");
  EXPECT_TRUE(std::get<TensorAttribute>(graph->attribute("c")->value).meta.device.is_cuda());
  EXPECT_EQ(difference(*graph, *parse(print(*graph))), "");
}

struct BadText {
  const char* body;
  const char* message;
};

class BadBody : public ::testing::TestWithParam<BadText> {};

TEST_P(BadBody, IsRefusedWithPlaceAndReason) {
  const std::string message = body_refusal(GetParam().body);
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_EQ(message.find("f.py:"), 0U) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Parse, BadBody,
    ::testing::Values(
        BadText{"        return z\n", "f.py:3:16: 'z' is not defined"},
        BadText{"        a = torch.relu(x\n", "'(' is never closed"},
        BadText{"        a = torch.relu(x))\n", "unmatched ')'"},
        BadText{"        a = torch.relu(x]\n", "']' does not match the open '('"},
        BadText{"        a = 'text\n", "this string is never closed"},
        BadText{"        a = torch.relu(x y)\n", "expected ',' or ')' in the call but found 'y'"},
        BadText{"        a = torch.relu(x)\n", "forward() has no return statement"},
        BadText{"        a = 99999999999999999999\n        return a\n", "not a number"},
        BadText{"        import os\n        return x\n", "cannot contain this statement"},
        BadText{"        for i in x:\n            pass\n        return x\n",
                "cannot contain this statement"},
        BadText{"        a = [i for i in x]\n        return a\n", "cannot contain a comprehension"},
        BadText{"        a = torch.relu(lambda: x)\n        return a\n", "cannot contain a lambda"},
        BadText{"        a = x if y else x\n        return a\n",
                "cannot contain a conditional expression"},
        BadText{"        a = torch.relu(**x)\n        return a\n", "cannot contain **"},
        BadText{"        a = torch.full([], device(type='nowhere'))\n        return a\n",
                "not a device"},
        BadText{"        return x\n        return y\n", "after the return"},
        BadText{"      a = 1\n    b = 2\n   c = 3\n", "indentation matches no enclosing block"},
        BadText{"        a = torch.relu(x) $ y\n", "unexpected character '$'"}));

TEST(Parse, AConstantHasAName) {
  auto graph = parse(
      "rows = 2 * 3\n"
      "class Repro(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.scale = 0.5\n"
      "    def forward(self, x):\n"
      "        columns = 4\n"
      "        return x.view(rows, columns) * self.scale\n");
  EXPECT_EQ(print_call(*graph->output()->args()[0].node()->args()[0].node()), "x.view(6, 4)");
  EXPECT_EQ(print_call(*graph->output()->args()[0].node()), "view * 0.5");
}

TEST(Parse, NumbersByName) {
  auto graph = parse_body("        return torch.clamp(x, float('-inf'), math.pi)\n");
  EXPECT_EQ(print_call(*graph->output()->args()[0].node()),
            "torch.clamp(x, -inf, 3.141592653589793)");
}

TEST(Parse, ModulesAsReprPrintsThem) {
  auto graph = parse(
      "class Repro(torch.nn.Module):\n"
      "    def __init__(self):\n"
      "        super().__init__()\n"
      "        self.m = Sequential(\n"
      "          (0): Linear(in_features=2, out_features=3, bias=True)\n"
      "          (act): ReLU()\n"
      "          (2-3): 2 x Dropout(p=0.1, inplace=False)\n"
      "        ).eval()\n"
      "    def forward(self, x):\n"
      "        m = self.m(x)\n"
      "        return m\n");
  const auto& module = std::get<ModuleAttribute>(graph->attribute("m")->value);
  EXPECT_FALSE(module.is_training);
  ASSERT_EQ(module.members->size(), 4U);
  EXPECT_EQ((*module.members)[1].name, "act");
  EXPECT_EQ((*module.members)[3].name, "3");
  EXPECT_EQ((*module.members)[3].module.constructor, "Dropout");
  EXPECT_FALSE((*module.members)[3].module.is_training);
  EXPECT_EQ(difference(*graph, *parse(print(*graph))), "");
}

TEST(Parse, AnAttributeIsSetInTheConstructor) {
  const std::string head = "class Repro(torch.nn.Module):\n";
  const std::string forward =
      "    def forward(self):\n        a = self.missing\n        return a\n";
  const std::string constructor = "    def __init__(self):\n        super().__init__()\n";
  EXPECT_NE(refusal(head + constructor + forward).find("no attribute 'missing'"),
            std::string::npos);
  // The readable form has no constructor at all.
  auto graph = parse(head + forward);
  EXPECT_EQ(std::get<MissingSubgraph>(graph->attribute("missing")->value).text, kMissingAttribute);
}

TEST(Parse, AnInPlaceStatementNeedsNoName) {
  auto graph = parse_body("        x += y\n        x[0] = 1.5\n        return x\n");
  EXPECT_EQ(graph->size(), 5U);
  EXPECT_TRUE(graph->find("iadd") != nullptr && graph->find("setitem") != nullptr);
  EXPECT_EQ(graph->output()->args()[0].node(), graph->find("iadd")) << "x is what += made of it";
}

// Each class is read once, so that a short file cannot describe a huge graph.
TEST(Parse, ASubgraphClassIsUsedOnce) {
  std::string text = "class C0(torch.nn.Module):\n    def forward(self, x):\n        return x\n";
  for (int i = 1; i < 45; ++i) {
    const std::string before = "C" + std::to_string(i - 1);
    text += "class C" + std::to_string(i) +
            "(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.a = " +
            before + "()\n        self.b = " + before +
            "()\n"
            "    def forward(self, x):\n        return x\n";
  }
  EXPECT_NE(refusal(text).find("the class 'C0' is used twice"), std::string::npos) << refusal(text);
}

TEST(Parse, ATooDeepExpressionIsRefused) {
  for (const std::string open : {"(", "[", "-", "not ", "x[", "torch.relu(", "x.y.", "x**", "x+"}) {
    std::string body = "        a = ";
    for (int i = 0; i < 100000; ++i) body += open;
    const std::string message = body_refusal(body + "x\n        return a\n");
    EXPECT_NE(message, "accepted") << open;
  }
}

TEST(Parse, BinaryFilesAreRefused) {
  EXPECT_NE(refusal(std::string("\x7f"
                                "ELF\x02\x01\0\0",
                                8))
                .find("the file is not text: byte 0x7f"),
            std::string::npos);
  EXPECT_NE(refusal("x = '\xff\xfe'").find("not text"), std::string::npos);
  EXPECT_NE(refusal("").find("no graph found"), std::string::npos);
  EXPECT_NE(refusal("print('hello')\n").find("no graph found"), std::string::npos);
}

TEST(Parse, TheMessageShowsTheLine) {
  EXPECT_EQ(body_refusal("        a = torch.relu(x, nope)\n        return a\n"),
            "f.py:3:27: 'nope' is not defined\n"
            "  3 |         a = torch.relu(x, nope)\n"
            "    |                           ^~~~\n"
            "  hint: a graph can only use its parameters and the values computed above");
}

}  // namespace
}  // namespace assay::graph
