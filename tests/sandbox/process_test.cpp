// A process within limits: how it ended is told rightly, and nothing of it is left.
#include "sandbox/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

namespace assay::sandbox {
namespace {

using Clock = std::chrono::steady_clock;

Limits quick() {
  Limits limits;
  limits.wall_seconds = 20;
  limits.cpu_seconds = 20;
  return limits;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void say(int pipe, const std::string& text) {
  EXPECT_EQ(write(pipe, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

// Not there, or dead and waiting for somebody to notice.
bool is_gone(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(stat, text)) return true;
  return text.substr(text.rfind(')') + 2, 1) == "Z";
}

bool is_gone_soon(pid_t process) {
  for (int i = 0; i < 100 && !is_gone(process); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return is_gone(process);
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(Process, TheExitCodeIsTold) {
  for (int code : {0, 1, 42, 255}) {
    const Ending ending = run_process(quick(), [&](int) { _exit(code); });
    EXPECT_EQ(ending.outcome.exit_code, code);
    EXPECT_EQ(ending.outcome.signal, std::nullopt);
    EXPECT_EQ(ending.outcome.limit, Outcome::Limit::none);
  }
  EXPECT_EQ(run_process(quick(), [](int) {}).outcome.exit_code, 0);
}

TEST(Process, EverySignalIsTold) {
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGKILL, SIGINT, SIGUSR1}) {
    const Ending ending = run_process(quick(), [&](int) {
      (void)signal(number, SIG_DFL);
      raise(number);
    });
    EXPECT_EQ(ending.outcome.signal, number);
    EXPECT_EQ(ending.outcome.exit_code, std::nullopt);
    EXPECT_EQ(ending.outcome.limit, Outcome::Limit::none);
  }
}

TEST(Process, AnExceptionEndsOnlyTheProcess) {
  const pid_t here = getpid();
  const Ending ending = run_process(quick(), [](int) { throw std::runtime_error("lost"); });
  ASSERT_EQ(getpid(), here);
  EXPECT_EQ(ending.outcome.signal, SIGABRT);
  EXPECT_NE(ending.outcome.output.find("lost"), std::string::npos);
}

TEST(Process, TimeThatPassesIsLimited) {
  Limits limits = quick();
  limits.wall_seconds = 0.1;
  const auto begin = Clock::now();
  const Ending ending = run_process(limits, [](int) { sleep(30); });
  EXPECT_EQ(ending.outcome.limit, Outcome::Limit::wall);
  EXPECT_GE(ending.outcome.seconds, 0.1);
  EXPECT_LT(seconds_since(begin), 5);
}

TEST(Process, TimeThatIsUsedIsLimited) {
  Limits limits = quick();
  limits.cpu_seconds = 0.1;
  const Ending ending = run_process(limits, [](int) {
    volatile bool goes_on = true;
    while (goes_on) {
    }
  });
  EXPECT_EQ(ending.outcome.limit, Outcome::Limit::cpu);
  EXPECT_GE(ending.outcome.cpu_seconds, 0.09);
}

int words_pipe = -1;

TEST(Process, AtTheLimitThereIsAMomentForLastWords) {
  Limits limits = quick();
  limits.wall_seconds = 0.05;
  const Ending ending = run_process(limits, [](int pipe) {
    words_pipe = pipe;
    (void)signal(SIGTERM, [](int) {
      (void)!write(words_pipe, "here\n", 5);
      _exit(3);
    });
    while (true) pause();
  });
  EXPECT_EQ(ending.outcome.limit, Outcome::Limit::wall);
  EXPECT_EQ(ending.outcome.exit_code, 3);
  EXPECT_EQ(ending.report, std::vector<std::string>{"here"});
}

TEST(Process, WhoeverDoesNotListenIsKilled) {
  Limits limits = quick();
  limits.wall_seconds = 0.05;
  const auto begin = Clock::now();
  const Ending ending = run_process(limits, [](int) {
    (void)signal(SIGTERM, SIG_IGN);
    while (true) pause();
  });
  EXPECT_EQ(ending.outcome.signal, SIGKILL);
  EXPECT_EQ(ending.outcome.limit, Outcome::Limit::wall);
  EXPECT_LT(seconds_since(begin), 5);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Process, MemoryIsLimitedOnTopOfWhatThereIs) {
  Limits limits = quick();
  limits.memory_bytes = std::size_t{64} << 20U;
  const auto allocate = [&](std::size_t megabytes) {
    return run_process(limits, [&](int) {
      try {
        volatile char* memory = new char[megabytes << 20U];
        memory[0] = 1;
        _exit(0);
      } catch (const std::bad_alloc&) {
        _exit(9);
      }
    });
  };
  EXPECT_EQ(allocate(32).outcome.exit_code, 0);
  EXPECT_EQ(allocate(128).outcome.exit_code, 9);
}

// As on a busy machine: at its time limit it has most of its memory still before it.
TEST(Process, WhoeverExhaustsItsMemorySlowlyDoesNotHang) {
  Limits limits = quick();
  limits.wall_seconds = 1;
  limits.memory_bytes = std::size_t{320} << 20U;
  const auto take = [&](std::size_t megabytes) {
    return run_process(limits, [&](int) {
      std::vector<char*> blocks;
      try {
        for (std::size_t taken = 0; taken < megabytes; taken += 20) {
          blocks.push_back(new char[std::size_t{20} << 20U]);
          usleep(100'000);
        }
      } catch (const std::bad_alloc&) {
        _exit(9);
      }
      while (true) pause();
    });
  };
  EXPECT_EQ(take(1000).outcome.exit_code, 9);
  EXPECT_EQ(take(200).outcome.limit, Outcome::Limit::wall) << "it takes no more, and hangs";
}

TEST(Process, WhoeverTakesMemoryForTooLongIsEnded) {
  Limits limits = quick();
  limits.wall_seconds = 0.1;
  limits.memory_bytes = std::size_t{16} << 30U;
  const Ending ending = run_process(limits, [](int) {
    std::vector<char*> blocks;
    while (true) {
      blocks.push_back(new char[std::size_t{128} << 20U]);
      usleep(5'000);
    }
  });
  EXPECT_NE(ending.outcome.limit, Outcome::Limit::none);
}
#endif

TEST(Process, OnlyTheEndOfALongOutputIsKept) {
  Limits limits = quick();
  limits.output_bytes = 1000;
  const Ending ending = run_process(limits, [](int) {
    const std::string block(1 << 16, 'x');
    for (int i = 0; i < 40; ++i) (void)std::fwrite(block.data(), 1, block.size(), stdout);
    (void)std::fputs("the end", stderr);
    (void)std::fflush(stdout);
    (void)std::fputs("the very end", stdout);
  });
  EXPECT_EQ(ending.outcome.output.size(), 1000U);
  EXPECT_TRUE(ending.outcome.output.ends_with("the very end"));
}

TEST(Process, WhatIsBufferedHereIsPrintedOnce) {
  std::fputs(" ", stdout);
  EXPECT_EQ(run_process(quick(), [](int) {}).outcome.output, "");
}

TEST(Process, ThereIsNothingToReadFromStandardInput) {
  const Ending ending = run_process(quick(), [](int) { _exit(std::getchar() == EOF ? 0 : 1); });
  EXPECT_EQ(ending.outcome.exit_code, 0);
}

TEST(Process, AReportIsLinesAndOneCutShortIsLeftOut) {
  const Ending ending = run_process(quick(), [](int pipe) {
    say(pipe, "one\ntwo\n");
    say(pipe, "three\nfo");
    raise(SIGKILL);
  });
  EXPECT_EQ(ending.report, (std::vector<std::string>{"one", "two", "three"}));
}

TEST(Process, AReportMayBeLong) {
  const std::string line(1 << 20, 'r');
  const Ending ending = run_process(quick(), [&](int pipe) {
    const std::string text = line + "\n";
    for (std::size_t done = 0; done < text.size();) {
      done += static_cast<std::size_t>(write(pipe, text.data() + done, text.size() - done));
    }
  });
  ASSERT_EQ(ending.report.size(), 1U);
  EXPECT_EQ(ending.report[0], line);
}

pid_t fork_sleeper(bool leaves_group) {
  const pid_t process = fork();
  if (process != 0) return process;
  if (leaves_group) setsid();
  sleep(60);
  _exit(0);
}

TEST(Process, WhatItLeavesRunningIsKilled) {
  const Ending ending =
      run_process(quick(), [](int pipe) { say(pipe, std::to_string(fork_sleeper(false)) + "\n"); });
  EXPECT_EQ(ending.outcome.exit_code, 0);
  ASSERT_EQ(ending.report.size(), 1U);
  EXPECT_TRUE(is_gone_soon(std::stoi(ending.report[0])));
}

TEST(Process, WhoeverLeavesTheGroupIsNotWaitedFor) {
  const auto begin = Clock::now();
  const Ending ending =
      run_process(quick(), [](int pipe) { say(pipe, std::to_string(fork_sleeper(true)) + "\n"); });
  EXPECT_EQ(ending.outcome.exit_code, 0);
  EXPECT_LT(seconds_since(begin), 5);
  ASSERT_EQ(ending.report.size(), 1U);
  kill(std::stoi(ending.report[0]), SIGKILL);
}

TEST(Process, IsCancelledThroughTheControlDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  say(ends[1], "goon");
  int asked = 0;
  const auto begin = Clock::now();
  const Ending ending = run_process(
      quick(), [](int) { sleep(30); }, ends[0],
      [&] {
        char letter = 0;
        EXPECT_EQ(read(ends[0], &letter, 1), 1);
        return ++asked == 4;
      });
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(ending.was_cancelled);
  EXPECT_EQ(ending.outcome.signal, SIGKILL);
  EXPECT_EQ(ending.outcome.limit, Outcome::Limit::none);
  EXPECT_LT(seconds_since(begin), 5);
  close(ends[0]);
  close(ends[1]);
}

TEST(Process, DoesNotKeepTheControlDescriptorOpen) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Ending ending = run_process(
      quick(), [&](int) { _exit(fcntl(ends[0], F_GETFD) < 0 ? 0 : 1); }, ends[0]);
  EXPECT_EQ(ending.outcome.exit_code, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST(Process, LeavesNeitherDescriptorsNorZombies) {
  const std::ptrdiff_t before = open_descriptors();
  for (int i = 0; i < 10; ++i) run_process(quick(), [](int) {});
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Process, EndsEvenIfTheCallerIgnoredItsChildren) {
  const auto old = signal(SIGCHLD, SIG_IGN);
  Limits limits = quick();
  limits.wall_seconds = 5;
  const Ending ending = run_process(limits, [](int) { _exit(7); });
  EXPECT_EQ(ending.outcome.exit_code, 7);
  EXPECT_EQ(ending.outcome.limit, Outcome::Limit::none);
  (void)signal(SIGCHLD, old);
}

}  // namespace
}  // namespace assay::sandbox
