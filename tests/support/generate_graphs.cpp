// Writes generated graphs as repro files into a directory, for tests that run them under stock
// PyTorch: generate_graphs DIRECTORY COUNT [FIRST_SEED]
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "repro/write.h"
#include "support/graph_generator.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: generate_graphs DIRECTORY COUNT [FIRST_SEED]\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t first = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  std::filesystem::create_directories(directory);
  assay::repro::ContentStore store(directory / "checkpoints");
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    assay::testing::GeneratorOptions options;
    options.seed = seed;
    options.calls = 5 + seed % 40;
    const auto file = assay::testing::generate(options, &store);
    std::ofstream(directory / ("graph_" + std::to_string(seed) + ".py"))
        << assay::repro::print_repro_file(file);
  }
  return 0;
}
