#include "frontend/cpp_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

namespace assay::frontend {

namespace {

constexpr int kMostFrames = 1024;      // of a stack
constexpr std::size_t kMostLines = 8;  // of a message
constexpr std::chrono::seconds kPatience{2};

// How many frames lie outside of the program that this thread runs.
thread_local int outer_frames = 0;

int stack_depth() {
  std::array<void*, kMostFrames> frames;
  return ::backtrace(frames.data(), kMostFrames);
}

struct Frame {
  std::string object;         // the executable or library
  std::uintptr_t offset = 0;  // of the call in the file
  std::string function;       // demangled; empty if unknown
  std::string place;          // file:line; empty if unknown
};

std::string_view file_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

bool is_library_of_ours(std::string_view path) {
  const std::string_view name = file_name(path);
  for (const std::string_view known :
       {"libtorch", "libc10", "libassay", "libstdc++", "libc.", "libc-", "libgcc", "libm.",
        "libpthread", "libgomp", "libasan", "libtsan", "libubsan", "ld-linux", "linux-vdso"}) {
    if (name.starts_with(known)) return true;
  }
  return false;
}

// Templates and inline functions of libraries are compiled into the user's object. The place tells
// better than the name: of inlined functions addr2line names the one around them.
bool is_name_of_ours(std::string_view function) {
  const std::string_view name = function_name(function);
  for (const std::string_view known : {"at::", "c10::", "torch::", "std::", "__gnu_cxx::",
                                       "assay::detail::", "assay::Compiled<"}) {
    if (name.starts_with(known)) return true;
  }
  return false;
}

bool is_place_of_ours(std::string_view place) {
  for (const std::string_view known : {"/torch/include/", "/include/c++/", "/include/assay/"}) {
    if (place.find(known) != std::string_view::npos) return true;
  }
  return false;
}

// A lambda that is inlined into the wrapper of include/assay/compile.h is named in the wrapper's
// name: "...::wrap<user::f()::{lambda(at::Tensor)#1}>...". Empty if it is not that wrapper.
std::string lambda_in_wrapper(std::string_view function) {
  constexpr std::string_view kWrapper = "::wrap<";
  const std::size_t found = function.find(kWrapper);
  if (found == std::string_view::npos || function.find("assay::Compiled<") > found) return {};
  const std::string_view rest = function.substr(found + kWrapper.size());
  int depth = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '<') ++depth;
    if (rest[i] != '>' || depth-- != 0) continue;
    const std::string_view name = rest.substr(0, i);
    return std::string(name.find("{lambda") == std::string_view::npos ? std::string_view() : name);
  }
  return {};
}

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return status == 0 ? std::string(text.get()) : std::string(symbol);
}

std::string path_of(const Dl_info& info) {
  // The executable's name is what it was started with: perhaps no path.
  std::string path = info.dli_fname == nullptr ? std::string() : std::string(info.dli_fname);
  if (path.find('/') != std::string::npos && ::access(path.c_str(), R_OK) == 0) return path;
  std::array<char, 4096> target;
  const ssize_t length = ::readlink("/proc/self/exe", target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : path;
}

std::vector<Frame> user_frames() {
  std::array<void*, kMostFrames> addresses;
  const int depth = ::backtrace(addresses.data(), kMostFrames);
  const int inner = depth == kMostFrames ? depth : depth - outer_frames;
  std::vector<Frame> frames;
  for (int i = 0; i < inner; ++i) {
    // An address on the stack is where the call returns to; the call is before it.
    const auto address =
        reinterpret_cast<std::uintptr_t>(addresses[static_cast<std::size_t>(i)]) - 1;
    Dl_info info{};
    if (::dladdr(reinterpret_cast<void*>(address), &info) == 0) continue;
    Frame frame;
    frame.object = path_of(info);
    if (is_library_of_ours(frame.object)) continue;
    const auto* header = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
    const bool is_moved = header->e_type == ET_DYN;
    frame.offset = is_moved ? address - reinterpret_cast<std::uintptr_t>(info.dli_fbase) : address;
    if (info.dli_sname != nullptr) frame.function = demangled(info.dli_sname);
    frames.push_back(std::move(frame));
  }
  return frames;
}

// ---- a child process, without a shell ----

void end_child(pid_t child, bool is_done) {
  if (!is_done) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
}

// False if the time is over before the child closes its output.
bool read_until_closed(int descriptor, std::string& text) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::array<char, 4096> buffer;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{descriptor, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// What the program prints; empty if it cannot be started or takes too long.
std::string output_of(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  if (failed == 0) {
    const bool is_done = read_until_closed(ends[0], text);
    end_child(child, is_done);
    if (!is_done) text.clear();
  }
  ::close(ends[0]);
  return text;
}

// ---- addr2line ----

std::string hexadecimal(std::uintptr_t number) {
  std::ostringstream text;
  text << "0x" << std::hex << number;
  return text.str();
}

// "file.cpp:12 (discriminator 3)" becomes "file.cpp:12"; "??:0" and "file.cpp:?" nothing.
std::string known_place(std::string_view place) {
  place = place.substr(0, place.find(" (discriminator"));
  const bool is_known =
      !place.starts_with("??") && !place.ends_with(":?") && !place.ends_with(":0");
  return std::string(is_known ? place : std::string_view());
}

// What addr2line knows about each address: the function inlined innermost first, then those around.
std::map<std::uintptr_t, std::vector<Frame>> ask_addr2line(const std::string& object,
                                                           const std::vector<Frame>& frames) {
  std::vector<std::string> command = {"addr2line", "--addresses", "--functions", "--demangle",
                                      "--inlines", "--exe",       object};
  for (const Frame& frame : frames) {
    if (frame.object == object) command.push_back(hexadecimal(frame.offset));
  }
  std::map<std::uintptr_t, std::vector<Frame>> found;
  std::istringstream lines(output_of(command));
  std::uintptr_t offset = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0x")) {
      offset = std::strtoull(line.c_str(), nullptr, 16);
      continue;
    }
    Frame frame{object, offset, line.starts_with("??") ? std::string() : line, {}};
    if (!std::getline(lines, line)) break;
    frame.place = known_place(line);
    found[offset].push_back(std::move(frame));
  }
  return found;
}

std::vector<Frame> with_places(const std::vector<Frame>& frames) {
  std::map<std::string, std::map<std::uintptr_t, std::vector<Frame>>> known;
  for (const Frame& frame : frames) {
    if (!known.contains(frame.object)) known[frame.object] = ask_addr2line(frame.object, frames);
  }
  std::vector<Frame> all;
  for (const Frame& frame : frames) {
    std::vector<Frame>& found = known[frame.object][frame.offset];
    if (found.empty() || (found.size() == 1 && found[0].function.empty())) {
      all.push_back(frame);
    } else {
      all.insert(all.end(), found.begin(), found.end());
    }
  }
  return all;
}

std::string line_about(const Frame& frame) {
  const std::string place =
      frame.place.empty() ? std::string(file_name(frame.object)) + "+" + hexadecimal(frame.offset)
                          : frame.place;
  if (frame.function.empty()) return "\n  at " + place;
  return "\n  in " + frame.function + " at " + place;
}

}  // namespace

// Not counted: stack_depth, this constructor, and whoever makes the object. Should the compiler
// inline one of them, a frame of libassay more is looked at and left out.
UserProgramScope::UserProgramScope() : saved_(outer_frames) {
  outer_frames = std::max(stack_depth() - 3, 0);
}

UserProgramScope::~UserProgramScope() { outer_frames = saved_; }

std::string_view function_name(std::string_view demangled_name) {
  // A template's name begins with its return type. Spaces inside brackets are part of a name, as
  // in "(anonymous namespace)::f"; what follows the parameters is " const" or " [clone ...]".
  int depth = 0;
  for (std::size_t i = 0; i < demangled_name.size(); ++i) {
    const char c = demangled_name[i];
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == '}' || c == ']') --depth;
    if (c != ' ' || depth != 0) continue;
    const std::string_view rest = demangled_name.substr(i + 1);
    const bool is_tail =
        rest.starts_with("const") || rest.starts_with("[") || rest.starts_with("&");
    return is_tail ? demangled_name.substr(0, i) : rest;
  }
  return demangled_name;
}

std::string cpp_stack() {
  std::string text;
  std::string last;  // the function of the last line
  std::size_t lines = 0;
  std::vector<Frame> frames = with_places(user_frames());
  for (Frame& frame : frames) {
    if (is_place_of_ours(frame.place)) continue;
    if (is_name_of_ours(frame.function)) {
      frame.function = lambda_in_wrapper(frame.function);
      if (frame.function.empty() && frame.place.empty()) continue;
      if (!frame.function.empty() && last.starts_with(frame.function)) continue;
    }
    if (++lines > kMostLines) return text + "\n  ...";
    text += line_about(frame);
    last = frame.function;
  }
  return text;
}

}  // namespace assay::frontend
