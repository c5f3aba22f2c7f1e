#include "sandbox/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <system_error>

namespace assay::sandbox {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReportBytes = std::size_t{256} << 20U;
// How long a process that was told to end may take to say where it was.
constexpr double kLastWords = 0.2;
// Who takes this part of the memory limit in half of the time limit is on the way to exhaust it...
constexpr std::uint64_t kPartTaken = 16;
// ... and may take this many times as long, or a busy machine would turn it into a hang.
constexpr double kMostTime = 4;

// The group of the process that is running; 0 if none is.
volatile std::sig_atomic_t running_group = 0;

void end_with_group(int) {
  if (running_group != 0) kill(-static_cast<pid_t>(running_group), SIGKILL);
  _exit(1);
}

// While it lives, SIGTERM waits.
class TermBlocked {
 public:
  TermBlocked() {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, &before_);
  }
  ~TermBlocked() { restore(); }
  TermBlocked(const TermBlocked&) = delete;
  TermBlocked& operator=(const TermBlocked&) = delete;
  void restore() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor = -1) : descriptor_(descriptor) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void reset(int descriptor) {
    close();
    descriptor_ = descriptor;
  }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

 private:
  int descriptor_;
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "pipe");
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  FileDescriptor read;
  FileDescriptor write;
};

// Address space in use.
std::uint64_t address_space(pid_t process) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(process) + "/statm").c_str(), "re");
  unsigned long long pages = 0;
  if (file != nullptr) {
    if (std::fscanf(file, "%llu", &pages) != 1) pages = 0;
    (void)std::fclose(file);
  }
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCanLimitMemory = false;  // the sanitizers' shadow memory fills the address space
#else
constexpr bool kCanLimitMemory = true;
#endif

void limit_memory(std::uint64_t bytes) {
  if (!kCanLimitMemory) return;
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, address_space(getpid()) + bytes);
  setrlimit(RLIMIT_AS, &limit);
}

// What the body throws must not unwind into the frames of the parent, of which this is a copy: it
// ends the process.
[[noreturn]] void be_the_process(const Limits& limits, const ProcessBody& body, Pipe& output,
                                 Pipe& report, int control, pid_t parent) noexcept {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // Whoever outlives this process must not keep the server's connection open.
  if (control >= 0) close(control);
  output.read.close();
  report.read.close();
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  if (nothing > STDERR_FILENO) close(nothing);
  dup2(output.write.get(), STDOUT_FILENO);
  dup2(output.write.get(), STDERR_FILENO);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  limit_memory(limits.memory_bytes);
  body(report.write.get());
  (void)std::fflush(nullptr);
  _exit(0);
}

// What is there to read now, at most a buffer full. False at the end of the stream.
bool read_some(int descriptor, std::string& text) {
  char buffer[1 << 16];
  const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
  if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Supervisor {
 public:
  Supervisor(pid_t process, const Limits& limits, Pipe& output, Pipe& report, int control,
             const IsCancelled& is_cancelled)
      : process_(process),
        limits_(limits),
        output_(output.read),
        report_(report.read),
        control_(control),
        is_cancelled_(is_cancelled),
        exit_(static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}

  Ending supervise() {
    while (!has_ended_) {
      wait_for_news();
      if (!has_ended_) enforce_limits();
    }
    kill(-process_,
         SIGKILL);  // what it left running; its number is free only once it is waited for
    running_group = 0;
    reap();
    drain();
    return finish();
  }

 private:
  void wait_for_news() {
    pollfd polled[4] = {{report_.get(), POLLIN, 0},
                        {output_.get(), POLLIN, 0},
                        {exit_.get(), POLLIN, 0},
                        {control_, POLLIN, 0}};
    poll(polled, 4, static_cast<int>(next_check() * 1000) + 1);
    if (polled[0].revents != 0 && !read_some(report_.get(), report_text_)) report_.close();
    if (polled[1].revents != 0 && !read_output()) output_.close();
    if (polled[3].revents != 0 && is_cancelled_ && is_cancelled_()) {
      was_cancelled_ = true;
      kill(-process_, SIGKILL);
    }
    if (report_text_.size() > kReportBytes) kill(-process_, SIGKILL);
    siginfo_t info{};
    const int found =
        waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
    // No such child: SIGCHLD is ignored, and how it ended will never be known.
    has_ended_ = found == 0 ? info.si_pid == process_ : errno == ECHILD;
  }

  void reap() {
    while (wait4(process_, &status_, 0, &usage_) < 0) {
      if (errno != EINTR) {
        throw std::system_error(errno, std::generic_category(), "how a trial ended is not known");
      }
    }
  }

  bool read_output() {
    const bool goes_on = read_some(output_.get(), output_text_);
    if (output_text_.size() > 2 * limits_.output_bytes + (1U << 16U)) {
      output_text_.erase(0, output_text_.size() - limits_.output_bytes);
    }
    return goes_on;
  }

  // Without a pidfd the process's end is only noticed by looking.
  double next_check() const {
    if (!exit_.is_open()) return 0.002;
    if (told_to_end_) return kLastWords;
    const double part = memory_before_ ? time_allowed_ : time_allowed_ - 0.5;
    const double wall = part * limits_.wall_seconds - seconds_since(begin_);
    const double cpu = part * limits_.cpu_seconds - cpu_seconds();
    return std::clamp(std::min(wall, cpu), 0.005, 0.25);
  }

  double cpu_seconds() const {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(process_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  void enforce_limits() {
    if (told_to_end_) {
      if (seconds_since(*told_to_end_) > kLastWords) kill(-process_, SIGKILL);
      return;
    }
    const double wall = seconds_since(begin_) / limits_.wall_seconds;
    const double cpu = cpu_seconds() / limits_.cpu_seconds;
    if (!memory_before_ && std::max(wall, cpu) >= time_allowed_ - 0.5) {
      memory_before_ = address_space(process_);
    }
    if (std::max(wall, cpu) < time_allowed_ || is_exhausting_memory()) return;
    limit_ = cpu >= time_allowed_ ? Outcome::Limit::cpu : Outcome::Limit::wall;
    told_to_end_ = Clock::now();
    kill(process_, SIGTERM);
  }

  // If so, it gets another half of its time.
  bool is_exhausting_memory() {
    const std::uint64_t memory = address_space(process_);
    const bool is_growing = memory >= *memory_before_ + limits_.memory_bytes / kPartTaken;
    if (!kCanLimitMemory || !is_growing || time_allowed_ >= kMostTime) return false;
    time_allowed_ += 0.5;
    memory_before_ = memory;
    return true;
  }

  // A grandchild that left the group may hold the pipes open: take what is there, do not wait.
  void drain() {
    const auto rest = [](FileDescriptor& from, const auto& read) {
      pollfd polled{from.get(), POLLIN, 0};
      while (from.is_open() && poll(&polled, 1, 0) > 0 && read()) {
      }
    };
    rest(report_, [&] { return read_some(report_.get(), report_text_); });
    rest(output_, [&] { return read_output(); });
  }

  Ending finish() {
    Ending ending;
    Outcome& outcome = ending.outcome;
    if (WIFEXITED(status_)) outcome.exit_code = WEXITSTATUS(status_);
    if (WIFSIGNALED(status_)) outcome.signal = WTERMSIG(status_);
    outcome.limit = limit_;
    outcome.seconds = seconds_since(begin_);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    outcome.cpu_seconds = seconds(usage_.ru_utime) + seconds(usage_.ru_stime);
    outcome.peak_bytes = static_cast<std::uint64_t>(usage_.ru_maxrss) << 10U;
    if (output_text_.size() > limits_.output_bytes) {
      output_text_.erase(0, output_text_.size() - limits_.output_bytes);
    }
    outcome.output = std::move(output_text_);
    ending.was_cancelled = was_cancelled_;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = report_text_.find('\n', begin)) != std::string::npos;) {
      ending.report.push_back(report_text_.substr(begin, end - begin));
      begin = end + 1;
    }
    return ending;
  }

  pid_t process_;
  const Limits& limits_;
  FileDescriptor& output_;
  FileDescriptor& report_;
  int control_;
  const IsCancelled& is_cancelled_;
  FileDescriptor exit_;
  Clock::time_point begin_ = Clock::now();
  double time_allowed_ = 1;                     // in time limits
  std::optional<std::uint64_t> memory_before_;  // when half a limit was left of it
  std::optional<Clock::time_point> told_to_end_;
  Outcome::Limit limit_ = Outcome::Limit::none;
  std::string output_text_;
  std::string report_text_;
  bool was_cancelled_ = false;
  bool has_ended_ = false;
  int status_ = 0;
  rusage usage_{};
};

}  // namespace

Ending run_process(const Limits& limits, const ProcessBody& body, int control,
                   const IsCancelled& is_cancelled) {
  Pipe output;
  Pipe report;
  (void)std::fflush(nullptr);  // or the process would write it again
  signal(SIGCHLD,
         SIG_DFL);  // whoever started us may have ignored it: then nobody could be waited for
  const pid_t parent = getpid();
  pid_t process = 0;
  {
    // The process may have started others before we note its group: end_with_group must know it.
    const TermBlocked blocked;
    process = fork();
    if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (process == 0) {
      (void)signal(SIGTERM, SIG_DFL);
      blocked.restore();
      be_the_process(limits, body, output, report, control, parent);
    }
    setpgid(process, process);  // whoever is first: the group must exist before it is killed
    running_group = process;
  }
  output.write.close();
  report.write.close();
  return Supervisor(process, limits, output, report, control, is_cancelled).supervise();
}

void end_with_parent(pid_t parent) {
  (void)signal(SIGTERM, &end_with_group);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
}

}  // namespace assay::sandbox
