// Times printing and parsing a graph of N calls; prints JSON: bench_text [N] [REPEATS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "graph/parse.h"
#include "graph/print.h"
#include "graph/verify.h"
#include "support/graph_generator.h"

namespace {

using Clock = std::chrono::steady_clock;

template <typename Work>
double fastest_milliseconds(int repeats, const Work& work) {
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10'000;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 15;
  const auto graph = assay::testing::long_graph(calls);
  std::string text;
  const double print = fastest_milliseconds(repeats, [&] { text = assay::graph::print(*graph); });
  std::unique_ptr<assay::graph::Graph> read;
  const double parse = fastest_milliseconds(repeats, [&] { read = assay::graph::parse(text); });
  const double verify = fastest_milliseconds(repeats, [&] { assay::graph::find_problems(*read); });
  const double clone = fastest_milliseconds(repeats, [&] { read->clone(); });
  if (!assay::graph::difference(*graph, *read).empty()) {
    std::fprintf(stderr, "the graph that was read back differs\n");
    return 1;
  }
  std::printf(
      "{\"nodes\": %zu, \"bytes\": %zu, \"print_ms\": %.3f, \"parse_ms\": %.3f, "
      "\"verify_ms\": %.3f, \"clone_ms\": %.3f}\n",
      graph->size(), text.size(), print, parse, verify, clone);
  return 0;
}
