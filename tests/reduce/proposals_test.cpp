// Whatever graph there is, every proposal of every pass is a sound program, and a smaller one.
#include "reduce/bridge.h"
#include "reduce/inputs.h"
#include "reduce_fixture.h"
#include "repro/write.h"
#include "support/graph_generator.h"

namespace assay::reduce {
namespace {

class ProposalsTest : public ReduceTest {};

// The order in which programs become smaller, see reduce/search.h: the first that differs decides.
std::vector<std::int64_t> measure(const Candidate& program) {
  std::int64_t subgraphs = 0;
  std::int64_t calls = 0;
  std::int64_t costly = 0;
  for (const graph::Node& node : program.graph->nodes()) {
    if (!node.is_call()) continue;
    ++calls;
    if (node.target().name().find("higher_order") != std::string::npos) ++subgraphs;
    if (!is_cheap(node)) ++costly;
  }
  std::int64_t results = 0;
  program.graph->output()->for_each_input([&](const graph::Node&) { ++results; });
  return {subgraphs, calls, costly, std::ssize(program.inputs), results, count_elements(program)};
}

TEST_F(ProposalsTest, AreSoundAndSmaller) {
  std::size_t count = 0;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    testing::GeneratorOptions options;
    options.seed = seed;
    options.calls = 4 + seed % 12;
    Candidate program =
        load_with_values(repro::print_repro_file(testing::generate(options), {.releases = false}));
    for (const graph::Node& node : program.graph->nodes()) {
      const bool is_suspect = node.is_call() && program.suspects.size() < seed % 7;
      if (is_suspect) program.suspects.push_back(node.name());
    }
    // Any two calls may be where a failure begins and where it shows.
    const auto calls = atoms(*program.graph);
    const std::string& first = calls[seed % calls.size()].front()->name();
    program.ends = Ends{{{first, "dtype"}}, seed % 3 == 0 ? "" : calls.back().front()->name()};
    const auto before = measure(program);
    for (const Pass& pass : all_passes()) {
      for (const Candidate& proposal : proposals(pass, program)) {
        ++count;
        EXPECT_LE(measure(proposal), before) << "seed " << seed << ", " << pass.name << "\n"
                                             << workspace_->print(program) << "becomes\n"
                                             << workspace_->print(proposal);
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(count, 1000U);
}

}  // namespace
}  // namespace assay::reduce
