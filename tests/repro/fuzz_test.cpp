// Mutates valid files 10,000 times with a fixed seed: whatever comes out is parsed or refused with
// a UserError, and what is parsed prints to something that parses again. Run it under the
// sanitizers (make asan-test) to see memory errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <vector>

#include "assay/error.h"
#include "aten/facts.h"
#include "graph/verify.h"
#include "repro/repro_file.h"
#include "repro/write.h"
#include "support/graph_generator.h"

namespace assay::repro {
namespace {

constexpr int kMutations = 10'000;

std::vector<std::string> seed_texts() {
  std::vector<std::string> texts;
  const std::filesystem::path root = std::filesystem::path(ASSAY_SOURCE_DIR) / "tests/fixtures";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".py") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const auto& path : paths) texts.push_back(read_repro_file(path).source->text);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    testing::GeneratorOptions options;
    options.seed = 1000 + seed;
    texts.push_back(print_repro_file(testing::generate(options)));
  }
  return texts;
}

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)), random_(20261115) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    const std::size_t edits = 1 + below(4);
    for (std::size_t i = 0; i < edits && !text.empty(); ++i) edit(text);
    return text;
  }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }

  // A stretch of `text`: a line, or some bytes.
  std::pair<std::size_t, std::size_t> stretch(const std::string& text) {
    const std::size_t at = below(text.size());
    if (below(2) == 0) return {at, 1 + below(20)};
    const std::size_t begin = text.rfind('\n', at);
    const std::size_t end = text.find('\n', at);
    const std::size_t from = begin == std::string::npos ? 0 : begin;
    return {from, (end == std::string::npos ? text.size() : end) - from};
  }

  void edit(std::string& text) {
    static constexpr std::array<std::string_view, 30> kPieces = {"(",
                                                                 ")",
                                                                 "[",
                                                                 "]",
                                                                 "'",
                                                                 "\"",
                                                                 "\"\"\"",
                                                                 "\\",
                                                                 "\n",
                                                                 "    ",
                                                                 "\t",
                                                                 ":",
                                                                 ",",
                                                                 "=",
                                                                 ";",
                                                                 "-",
                                                                 "**",
                                                                 "99999999999999999999",
                                                                 "9223372036854775807",
                                                                 "0x",
                                                                 "1e999",
                                                                 "None",
                                                                 "self.",
                                                                 "torch.",
                                                                 "lambda x:",
                                                                 "*",
                                                                 "#",
                                                                 "\xff",
                                                                 "\0",
                                                                 "s0"};
    switch (below(6)) {
      case 0:
        text[below(text.size())] = static_cast<char>(below(256));
        return;
      case 1: {
        const auto [at, length] = stretch(text);
        text.erase(at, length);
        return;
      }
      case 2: {
        const auto [at, length] = stretch(text);
        text.insert(below(text.size()), text.substr(at, length));
        return;
      }
      case 3:
        text.insert(below(text.size()), kPieces[below(kPieces.size())]);
        return;
      case 4:
        text.resize(below(text.size()));
        return;
      default: {
        const std::string& other = seeds_[below(seeds_.size())];
        const auto [at, length] = stretch(other);
        text.insert(below(text.size()), other.substr(at, length));
      }
    }
  }

  std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

TEST(Fuzz, MutatedFilesAreParsedOrRefused) {
  Mutator mutator(seed_texts());
  int parsed = 0;
  for (int i = 0; i < kMutations; ++i) {
    const std::string text = mutator.next();
    try {
      const ReproFile file = parse_repro_file(text, "mutated.py");
      ++parsed;
      const auto problems = graph::find_problems(*file.graph);
      EXPECT_TRUE(problems.empty()) << "mutation " << i << ": " << problems.front();
      const std::string printed = print_repro_file(file);
      EXPECT_TRUE(print_repro_file(parse_repro_file(printed, "mutated.py")) == printed)
          << "mutation " << i << " does not round trip:\n"
          << printed;
    } catch (const UserError& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
    }
    if (::testing::Test::HasFailure()) FAIL() << "the mutated text:\n" << text;
  }
  // The mutations are neither all harmless nor all fatal.
  EXPECT_GT(parsed, kMutations / 20);
  EXPECT_LT(parsed, kMutations * 19 / 20);
}

}  // namespace
}  // namespace assay::repro
