#include "kernels/toolchain.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/environment.h"
#include "config/config.h"
#include "kernels/child_process.h"
#include "kernels/kernel_cache.h"
#include "observe/stream.h"

namespace assay::kernels {

namespace {

namespace fs = std::filesystem;

// No -ffast-math: results are those of the operators, NaN, infinities and -0 included.
// -fno-trapping-math gives up floating-point exceptions only, which nobody reads. Integers wrap.
const std::vector<std::string>& compiler_flags() {
  static const std::vector<std::string> flags = {
      "-x",
      "c++",
      "-std=c++17",
      "-O2",
      "-march=native",
      "-fPIC",
      "-shared",
      "-nostdlib",
      "-fno-math-errno",
      "-fno-trapping-math",
      "-ffp-contract=off",
      "-fwrapv",
      "-fno-exceptions",
      "-fno-rtti",
      "-fno-asynchronous-unwind-tables",
      "-fno-stack-protector",
      "-fno-use-linker-plugin",  // nothing to optimize at link time; loading it takes 2 ms
      "-Wl,-Bsymbolic",
      "-w",
  };
  return flags;
}

// Uses what generated code needs of a compiler.
constexpr const char* kProbe =
    "typedef float f32x4 __attribute__((vector_size(16)));\n"
    "typedef int i32x4 __attribute__((vector_size(16)));\n"
    "typedef short i16x4 __attribute__((vector_size(8)));\n"
    "extern \"C\" int probe(const f32x4* x) {\n"
    "  i32x4 bits = __builtin_bit_cast(i32x4, *x);\n"
    "  i16x4 narrow = __builtin_convertvector(*x > 0.0f ? bits : -bits, i16x4);\n"
    "  return __builtin_shufflevector(narrow, narrow, 2, 3)[0];\n"
    "}\n";

std::optional<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (access(name.c_str(), X_OK) == 0) return name;
    return std::nullopt;
  }
  const std::string path = base::environment_variable("PATH").value_or("/usr/bin:/bin");
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    const std::string candidate = path.substr(start, end - start) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) return candidate;
    start = end + 1;
  }
  return std::nullopt;
}

std::chrono::milliseconds time_limit() {
  return std::chrono::seconds(config::get<"compile_timeout">());
}

std::vector<std::string> command(const Toolchain& toolchain, const std::string& source,
                                 const std::string& library) {
  std::vector<std::string> arguments = {toolchain.compiler};
  arguments.insert(arguments.end(), toolchain.flags.begin(), toolchain.flags.end());
  arguments.insert(arguments.end(), {source, "-o", library});
  return arguments;
}

// What is wrong with a compiler; empty if it works. That it does is noted in the cache.
std::string check_compiler(const Toolchain& toolchain) {
  const std::string mark = cache_note("compiler works: " + toolchain.identity);
  std::error_code error;
  if (fs::exists(mark, error)) return {};
  std::string folder = (fs::temp_directory_path() / "assay-probe-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return "no temporary directory can be made";
  const std::string source = folder + "/probe.cpp";
  std::ofstream(source) << kProbe;
  const ChildResult result =
      run_child(command(toolchain, source, folder + "/probe.so"), time_limit());
  const bool works = result.is_success() && fs::exists(folder + "/probe.so", error);
  fs::remove_all(folder, error);
  if (!works) return "it " + result.describe() + "\n" + result.output;
  std::ofstream(mark) << toolchain.identity;
  return {};
}

std::unique_ptr<const Toolchain> find_toolchain(const std::string& wish) {
  std::vector<std::string> names = {"g++", "clang++"};
  if (!wish.empty()) names = {wish};
  std::string reason;
  for (const std::string& name : names) {
    const auto path = find_program(name);
    if (!path) {
      reason += (reason.empty() ? "" : "; ") + name + " was not found";
      continue;
    }
    auto found = std::make_unique<Toolchain>();
    found->compiler = *path;
    found->flags = compiler_flags();
    struct stat file {};
    stat(path->c_str(), &file);
    std::error_code error;
    found->identity = fs::canonical(*path, error).string() + " " + std::to_string(file.st_size) +
                      " " + std::to_string(file.st_mtime);
    const std::string fault = check_compiler(*found);
    if (fault.empty()) return found;
    reason += (reason.empty() ? "" : "; ") + *path + " does not work: " + fault;
  }
  observe::log(observe::Component::inductor, observe::Level::warning,
               "There is no C++ compiler for kernels (" + reason +
                   "), so graphs run operator by operator. Install g++, or set CXX.");
  return nullptr;
}

}  // namespace

const Toolchain* toolchain() {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Toolchain>, std::less<>> known;
  const std::string& wish = config::get<"cxx">();
  const std::lock_guard lock(mutex);
  auto found = known.find(wish);
  if (found == known.end()) found = known.emplace(wish, find_toolchain(wish)).first;
  return found->second.get();
}

void compile_library(const Toolchain& toolchain, const std::string& source,
                     const std::string& library) {
  const ChildResult result = run_child(command(toolchain, source, library), time_limit());
  std::error_code error;
  if (result.is_success() && fs::exists(library, error)) return;
  throw KernelCompileError("generated code does not compile: " + toolchain.compiler + " " +
                           result.describe() + ", on " + source + "\n" + result.output);
}

}  // namespace assay::kernels
