/// \file The commands of `assay`, one file each. Each returns the process's exit code: 0 fine, 1
/// the program under test failed; errors of usage or of the file are thrown as `UserError` (exit
/// code 2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::cli {

struct RunCommand {
  std::filesystem::path file;
  std::string backend = "eager";
  int threads = 0;  ///< 0: PyTorch's default
  int repeat = 1;
  std::uint64_t seed = 0;
  std::optional<std::filesystem::path> save_directory;
  std::optional<std::filesystem::path> output;  ///< Save the results here, for torch.load.
  std::optional<std::string> inject;            ///< A fault for the backend: `relu:accuracy`.
  bool backward = false;  ///< Also run backward and show the inputs' gradients.
  bool profile = false;   ///< Time every kernel and ATen call.
  bool json = false;

  // What follows is for run_isolated.
  bool isolated = false;               ///< Run in a process of its own, and say how that ends.
  bool accuracy = false;               ///< Compare with eager.
  bool all_strides = false;            ///< Strides that eager does not promise, too.
  bool ignore_non_fp = false;          ///< ... floating-point results only.
  std::string stack = "assay";         ///< Whose backend: assay, torch or python.
  std::filesystem::path backend_file;  ///< A Python backend that was sent by value.
  bool autocast = false;
  bool trust = false;             ///< Execute the Python lines before the file's graph.
  std::optional<double> timeout;  ///< Seconds.
};
int run(const RunCommand& command);
/// An empty backend is the one that the file names.
int run_isolated(RunCommand command);

struct ReduceCommand {
  std::filesystem::path file;
  std::string backend;                 ///< Empty: what the file names, else the stack's usual one.
  std::string stack = "assay";         ///< Whose compiler is tested: assay, torch or python.
  std::filesystem::path backend_file;  ///< A Python backend that was sent by value.
  std::string backend_server;          ///< The socket of a server that has the backend.
  std::filesystem::path output;
  std::string inject;
  std::string check;  ///< A command to test candidates with, instead of a backend.
  std::vector<std::string> passes;
  int jobs = 2;
  int threads = 0;  ///< Of the program; 0: PyTorch's default.
  int confirmations = 5;
  std::optional<double> timeout;  ///< Seconds; so is the next one: chosen by the file.
  std::optional<std::uint64_t> memory_megabytes;
  std::uint64_t seed = 0;
  bool accuracy = false;
  bool all_strides = false;
  bool only_forward = false;
  bool ignore_non_fp = false;
  bool restart = false;
  bool keep_passing = false;
  bool others = false;  ///< With the torch stack too: does the rest of the program fail?
  bool trust = false;
  bool list_passes = false;
  bool json = false;
};
int reduce_file(ReduceCommand command);

struct AnalyzeCommand {
  std::filesystem::path file;
  std::string backend;  ///< Empty: what the file names, else native.
  std::string inject;
  std::uint64_t seed = 0;
  bool json = false;
};
int analyze(AnalyzeCommand command);

struct BundleCommand {
  std::filesystem::path file;
  std::filesystem::path output;  ///< Empty: print it.
};
int bundle(const BundleCommand& command);

struct ShowCommand {
  std::filesystem::path file;
  bool dot = false;
  bool code = false;
  bool json = false;
  bool run = true;  ///< Run the graph once where the file does not say its shapes.
};
int show(const ShowCommand& command);

struct CoverageCommand {
  std::filesystem::path file;  ///< Empty: list every lowering.
  bool json = false;
};
int coverage(const CoverageCommand& command);

struct CacheCommand {
  std::string action = "stat";  ///< stat, clear or path
  bool json = false;
};
int cache(const CacheCommand& command);

struct RerunCommand {
  std::filesystem::path directory;  ///< Of one graph, in a debug directory.
  int repeat = 20;
  int threads = 0;  ///< 0: PyTorch's default
  std::uint64_t seed = 0;
  bool json = false;
};
int rerun(const RerunCommand& command);

/// Becomes the driver of `assay diagnose`, in Python; it parses the arguments.
int diagnose(const std::vector<std::string>& arguments);

/// Prints the report of a directory that `diagnose` or `reduce` has written.
int report(const std::filesystem::path& directory, bool json);

/// Lists the components and artifacts that TORCH_LOGS may name.
int logs(bool json);

/// Lists the graph passes.
int passes(bool json);

/// Lists the backends.
int backends(bool json);

/// Lists the settings as they are; 2 if the environment has a bad value.
int config(bool json);

/// Lists the operators that are decomposed, and into what.
int decompositions(bool json);

/// Assay's version and torch's.
std::string version_text();

}  // namespace assay::cli
