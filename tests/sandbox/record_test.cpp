// The values of a graph's nodes are recorded so that any of them can become an input.
#include "sandbox/record.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "repro/content_store.h"
#include "sandbox_fixture.h"

namespace assay::sandbox {
namespace {

using nlohmann::json;

class RecordTest : public SandboxTest {
 protected:
  json record(const std::string& body) {
    ServerPool pool(fork_server(), 1);
    Trial recording = trial(body);
    recording.task = Trial::Task::record;
    const Outcome outcome = pool.run(recording);
    EXPECT_EQ(outcome.report.status, "passed") << outcome.report.message;
    return json::parse(outcome.report.values);
  }

  // The tensor that an entry describes.
  at::Tensor load(const json& value) const {
    const repro::ContentStore store(directory_.path());
    const c10::Storage storage =
        store.read(value.at("storage").get<std::string>(), value.at("bytes").get<std::size_t>());
    at::Tensor tensor = at::empty({0});
    return tensor.set_(storage, value.at("offset").get<std::int64_t>(),
                       value.at("size").get<std::vector<std::int64_t>>(),
                       value.at("stride").get<std::vector<std::int64_t>>());
  }
};

using Sizes = std::vector<std::int64_t>;

TEST_F(RecordTest, TensorsWithTheirContents) {
  const json values = record(
      "ones = torch.ones(2, 3)\ntwice = ones * 2\nempty = twice[0:0]\nscalar = twice.sum()\n"
      "return (twice, empty, scalar)");
  EXPECT_EQ(values["twice"]["dtype"], "float32");
  EXPECT_FALSE(values["twice"]["requires_grad"].get<bool>());
  EXPECT_TRUE(load(values["twice"]).equal(at::full({2, 3}, 2.0F)));
  EXPECT_EQ(load(values["empty"]).sizes().vec(), (Sizes{0, 3}));
  EXPECT_EQ(load(values["scalar"]).item<float>(), 12);
  EXPECT_EQ(values["x"]["size"], (Sizes{4, 4})) << "an input is described too";
}

TEST_F(RecordTest, DenseTensorsKeepTheirStridesAndOthersBecomeContiguous) {
  const json values = record(
      "range = torch.arange(12.0)\nmatrix = range.view(3, 4)\nturned = matrix.t()\n"
      "column = matrix[:, 1]\nwide = column.expand(2, 3)\nreturn (turned, wide)");
  const at::Tensor matrix = at::arange(12.0, at::kFloat).view({3, 4});
  EXPECT_EQ(values["turned"]["stride"], (Sizes{1, 4}));
  EXPECT_TRUE(load(values["turned"]).equal(matrix.t()));
  EXPECT_EQ(values["column"]["stride"], (Sizes{1}));
  EXPECT_EQ(values["column"]["bytes"], 12);
  EXPECT_TRUE(load(values["column"]).equal(matrix.select(1, 1)));
  EXPECT_EQ(values["wide"]["stride"], (Sizes{3, 1}));
  EXPECT_TRUE(load(values["wide"]).equal(matrix.select(1, 1).expand({2, 3})));
}

TEST_F(RecordTest, ConstantsAndTuples) {
  const json values = record(
      "size = x.size(0)\nhalves = torch.chunk(torch.ones(4), 2)\nfirst = halves[0]\n"
      "best = torch.max(x, 1)\nindices = best[1]\nreturn (first, indices, size)");
  EXPECT_EQ(values["size"], json({{"constant", 4}}));
  EXPECT_EQ(values["halves"]["items"].size(), 2U);
  EXPECT_EQ(values["best"]["items"].size(), 2U);
  EXPECT_TRUE(load(values["first"]).equal(at::ones({2})));
  EXPECT_EQ(values["indices"]["dtype"], "int64");
}

TEST_F(RecordTest, WhatIsChangedInPlaceHasTheValueOfItsMoment) {
  const json values = record(
      "zeros = torch.zeros(2)\nbefore = zeros + 0\nchanged = zeros.add_(1)\nafter = zeros * 1\n"
      "return (before, changed, after)");
  EXPECT_TRUE(load(values["zeros"]).equal(at::zeros({2})));
  EXPECT_TRUE(load(values["changed"]).equal(at::ones({2})));
  EXPECT_TRUE(load(values["after"]).equal(at::ones({2})));
}

}  // namespace
}  // namespace assay::sandbox
