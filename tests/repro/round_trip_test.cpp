// parse(print(g)) is g, for generated graphs and for every checked-in file.
#include <gtest/gtest.h>

#include <filesystem>

#include "aten/facts.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "repro/repro_file.h"
#include "repro/write.h"
#include "support/graph_generator.h"

namespace assay::repro {
namespace {

constexpr std::uint64_t kGraphs = 300;

void expect_round_trip(const ReproFile& file, const std::string& what) {
  const auto again = graph::parse(graph::print(*file.graph));
  EXPECT_EQ(graph::difference(*file.graph, *again), "") << what << "\n"
                                                        << graph::print(*file.graph);
  const std::string text = print_repro_file(file);
  const ReproFile read = parse_repro_file(text, what);
  EXPECT_EQ(graph::difference(*file.graph, *read.graph), "") << what;
  EXPECT_EQ(print_repro_file(read), text) << what;
}

TEST(RoundTrip, GeneratedGraphs) {
  std::size_t nodes = 0;
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    testing::GeneratorOptions options;
    options.seed = seed;
    options.calls = 5 + seed % 40;
    const ReproFile file = testing::generate(options);
    nodes += file.graph->size();
    const auto problems = graph::find_problems(*file.graph, aten::pass_options().verify);
    EXPECT_TRUE(problems.empty()) << "seed " << seed << ": " << problems.front();
    expect_round_trip(file, "seed " + std::to_string(seed));
  }
  EXPECT_GT(nodes, kGraphs * 15) << "the generator hardly finds calls that run";
}

TEST(RoundTrip, CheckedInFiles) {
  std::size_t files = 0;
  const std::filesystem::path root = std::filesystem::path(ASSAY_SOURCE_DIR) / "tests/fixtures";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".py") continue;
    ++files;
    expect_round_trip(read_repro_file(entry.path()), entry.path().string());
  }
  EXPECT_GE(files, 7U);
}

}  // namespace
}  // namespace assay::repro
