// What the tests of src/observe share: a process put back to the default settings,
// scratch paths, captured stderr.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "observe/configure.h"
#include "observe/observe.h"
#include "observe/timings.h"

namespace assay::observe {

class ObserveTest : public testing::Test {
 protected:
  void SetUp() override { back_to_default(); }
  void TearDown() override {
    back_to_default();
    for (const std::string& path : scratch_paths_) std::filesystem::remove(path);
  }

  std::string scratch_path(const std::string& name) {
    const auto folder = std::filesystem::temp_directory_path();
    scratch_paths_.push_back(folder / ("assay_observe_" + std::to_string(::getpid()) + "_" + name));
    return scratch_paths_.back();
  }

  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// What `action` writes to stderr.
  template <class Action>
  static std::string stderr_of(Action&& action) {
    testing::internal::CaptureStderr();
    action();
    return testing::internal::GetCapturedStderr();
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

 private:
  static void back_to_default() {
    configure(Settings{});
    reset_timings();
  }

  std::vector<std::string> scratch_paths_;
};

/// The message of the SettingsError that `action` throws; fails the test if it throws none.
template <class Action>
std::string settings_error_of(Action&& action) {
  try {
    action();
  } catch (const SettingsError& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected a SettingsError";
  return {};
}

}  // namespace assay::observe
