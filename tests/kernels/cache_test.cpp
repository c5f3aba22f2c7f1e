/// \file The kernel cache and the compiler: many processes, damaged entries, a full disk's worth of
/// entries, code that does not compile, no compiler at all.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>

#include "config/config.h"
#include "kernels/emit.h"
#include "kernels/kernel_cache.h"
#include "kernels/toolchain.h"

namespace assay::kernels {
namespace {

namespace fs = std::filesystem;

std::string answer_code(int answer) {
  return "// shared\n\n// kernel answer: one point\n"
         "extern \"C\" int answer(void* const*, long, long) { return " +
         std::to_string(answer) + "; }\n";
}

int call_answer(const LoadedLibrary& library) {
  return reinterpret_cast<int (*)(void* const*, long, long)>(library.symbol("answer"))(nullptr, 0,
                                                                                       1);
}

class KernelCache : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    scope_.emplace(std::vector{config::assign<"cache_dir">(folder_)});
  }
  void TearDown() override {
    scope_.reset();
    fs::remove_all(folder_);
  }

  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator(cache_directory())) {
      if (file.path().extension() == ".so") found.push_back(file.path());
    }
    return found;
  }

  std::string folder_ = (fs::temp_directory_path() / "assay-cache-test-XXXXXX").string();
  std::optional<config::PatchScope> scope_;
};

TEST_F(KernelCache, CompilesTheSameTextOnce) {
  const auto first = compile_and_load(answer_code(42));
  const auto second = compile_and_load(answer_code(42));
  const auto other = compile_and_load(answer_code(43));
  EXPECT_EQ(first->compiled_units(), 1);
  EXPECT_EQ(second->compiled_units(), 0);
  EXPECT_EQ(other->compiled_units(), 1);
  EXPECT_EQ(call_answer(*second), 42);
  EXPECT_EQ(call_answer(*other), 43);
  EXPECT_EQ(cache_statistics().entries, 2);
  EXPECT_EQ(clear_cache(), 2);
  EXPECT_EQ(cache_statistics().entries, 0);
  EXPECT_EQ(compile_and_load(answer_code(42))->compiled_units(), 1);
}

TEST_F(KernelCache, BuildsDamagedEntriesAgain) {
  { EXPECT_EQ(call_answer(*compile_and_load(answer_code(1))), 1); }
  const fs::path entry = entries().at(0);
  const auto size = fs::file_size(entry);
  // One bit flipped, cut short, empty, and text instead of a library.
  for (int damage = 0; damage < 4; ++damage) {
    if (damage == 0) {
      std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(size / 2));
      const char byte = static_cast<char>(file.get() ^ 4);
      file.seekp(static_cast<std::streamoff>(size / 2));
      file.put(byte);
    } else if (damage < 3) {
      fs::resize_file(entry, damage == 1 ? size - 100 : 0);
    } else {
      std::ofstream(entry) << std::string(size, 'x');
    }
    const auto library = compile_and_load(answer_code(1));
    EXPECT_EQ(library->compiled_units(), 1) << damage;
    EXPECT_EQ(call_answer(*library), 1) << damage;
  }
}

TEST_F(KernelCache, IsSharedByManyProcesses) {
  std::vector<pid_t> children;
  for (int child = 0; child < 8; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      int wrong = 0;
      for (int k = 0; k < 4; ++k) {
        // All of them compile the same text at about the same time, and damage it in between.
        const auto library = compile_and_load(answer_code(k));
        wrong += call_answer(*library) == k ? 0 : 1;
        if (child == 0) clear_cache();
      }
      _exit(wrong);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (const auto& file : fs::directory_iterator(cache_directory())) {
    EXPECT_FALSE(file.path().filename().string().starts_with("tmp-")) << file.path();
  }
}

TEST_F(KernelCache, RemovesWhatWasNotUsedForLongest) {
  const config::PatchScope limit(std::vector{config::assign<"kernel_cache_megabytes">(1)});
  compile_and_load(answer_code(0));  // makes the directory
  const auto now = fs::file_time_type::clock::now();
  for (int k = 0; k < 10; ++k) {
    const fs::path path = cache_directory() + "/old" + std::to_string(k) + ".so";
    std::ofstream(path) << std::string(200 << 10, 'x');
    fs::last_write_time(path, now - std::chrono::hours(k + 2));
  }
  // Every 16th of the limit the sizes are added up.
  for (int k = 1; k < 12; ++k) compile_and_load(answer_code(k));
  EXPECT_LE(cache_statistics().bytes, 1 << 20);
  EXPECT_FALSE(fs::exists(cache_directory() + "/old9.so"));
  EXPECT_TRUE(fs::exists(cache_directory() + "/old0.so"));
  EXPECT_EQ(compile_and_load(answer_code(11))->compiled_units(), 0);
}

TEST_F(KernelCache, ReportsWhatTheCompilerSays) {
  try {
    compile_and_load("extern \"C\" int broken() { return surprise; }\n");
    FAIL() << "it compiled";
  } catch (const KernelCompileError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("surprise"), std::string::npos) << text;
    // The source that it names is there to look at.
    const std::size_t start = text.find(", on ") + 5;
    EXPECT_TRUE(fs::exists(text.substr(start, text.find('\n') - start))) << text;
  }
  EXPECT_THROW(compile_and_load(answer_code(5))->symbol("question"), InternalError);
}

TEST_F(KernelCache, StopsACompilerThatHangs) {
  const std::string compiler = folder_ + "/hangs";
  // Answers the check, then hangs.
  std::ofstream(compiler)
      << "#!/bin/sh\ncase \"$*\" in *probe*) exec g++ \"$@\";; esac\nsleep 60\n";
  fs::permissions(compiler, fs::perms::owner_all);
  const config::PatchScope slow(
      {config::assign<"cxx">(compiler), config::assign<"compile_timeout">(1)});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(compile_and_load(answer_code(6)), KernelCompileError);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST_F(KernelCache, DoesWithoutACompiler) {
  const config::PatchScope none(std::vector{config::assign<"cxx">("/no/such/compiler")});
  EXPECT_EQ(toolchain(), nullptr);
  EXPECT_THROW(compile_and_load(answer_code(7)), InternalError);
}

TEST_F(KernelCache, DoesNotUseACompilerThatDoesNotWork) {
  const std::string compiler = folder_ + "/fails";
  std::ofstream(compiler) << "#!/bin/sh\necho 'no space left' >&2\nexit 1\n";
  fs::permissions(compiler, fs::perms::owner_all);
  const config::PatchScope broken(std::vector{config::assign<"cxx">(compiler)});
  EXPECT_EQ(toolchain(), nullptr);
}

TEST(SplitUnits, EveryKernelIsInOneUnit) {
  std::string code = "typedef int i32;\n";
  for (int k = 0; k < 5; ++k) {
    const std::string name = "k" + std::to_string(k);
    code += "\n// kernel " + name + ": one point\nint " + name + "() { return 0; }\n";
  }
  const std::vector<std::string> units = split_units(code, 2);
  ASSERT_EQ(units.size(), 2);
  for (const std::string& unit : units) EXPECT_TRUE(unit.starts_with("typedef int i32;\n"));
  for (int k = 0; k < 5; ++k) {
    const std::string name = "// kernel k" + std::to_string(k) + ":";
    EXPECT_NE(units[0].find(name) == std::string::npos, units[1].find(name) == std::string::npos);
  }
  EXPECT_EQ(split_units(code, 1), std::vector{code});
  EXPECT_EQ(split_units("int x;\n", 4), std::vector<std::string>{"int x;\n"});
}

}  // namespace
}  // namespace assay::kernels
