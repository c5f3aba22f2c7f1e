#include "sandbox/report.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "aten/current_node.h"
#include "sandbox/origin.h"

namespace assay::sandbox {

namespace {

void write_all(int pipe, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(pipe, data, size);
    if (written < 0 && errno != EINTR) return;
    if (written <= 0) continue;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

constexpr int kForPeople = -1;
int signal_pipe = kForPeople;
const graph::Graph* subject = nullptr;

// Builds one line in a fixed buffer: a signal handler may not allocate.
class SmallText {
 public:
  void add(std::string_view text) {
    for (char letter : text) {
      if (letter == '"' || letter == '\\' || letter < ' ' || size_ + 64 > buffer_.size()) continue;
      buffer_[size_++] = letter;
    }
  }
  void add_syntax(std::string_view text) {
    for (char letter : text) buffer_[size_++] = letter;
  }
  const char* data() const { return buffer_.data(); }
  std::size_t size() const { return size_; }

 private:
  std::array<char, 4096> buffer_;
  std::size_t size_ = 0;
};

void write_report(const graph::Node& node, const graph::Node* origin) {
  SmallText text;
  text.add_syntax("{\"node\":\"");
  text.add(node.name());
  text.add_syntax("\",\"operator\":\"");
  text.add((origin == nullptr ? node : *origin).target().name());
  text.add_syntax("\",\"suspects\":[");
  if (origin != nullptr) {
    text.add_syntax("\"");
    text.add(origin->name());
    text.add_syntax("\"");
  }
  text.add_syntax("]}\n");
  write_all(signal_pipe, text.data(), text.size());
}

void write_for_people(int number, const graph::Node& node) {
  SmallText text;
  const char* what = sigdescr_np(number);
  text.add(what == nullptr ? "A fatal signal" : what);
  text.add(" in ");
  text.add(node.name());
  text.add(" (");
  text.add(node.target().name());
  text.add_syntax(
      ")\n  hint: `assay reduce` on the same file finds the smallest program that does this\n");
  write_all(STDERR_FILENO, text.data(), text.size());
}

void on_signal(int number) {
  if (const graph::Node* node = aten::current_node) {
    const graph::Node* origin = find_origin(*subject, node->name(), node->meta.provenance);
    if (signal_pipe == kForPeople) {
      write_for_people(number, origin == nullptr ? *node : *origin);
    } else {
      write_report(*node, origin);
    }
  }
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
}

void handle_signals(int pipe, const graph::Graph& graph) {
  signal_pipe = pipe;
  subject = &graph;
  // An overflowing stack leaves no room for a handler on it.
  static std::array<char, 1 << 16> stack;
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = &on_signal;
  action.sa_flags = SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    sigaction(number, &action, nullptr);
  }
  if (pipe != kForPeople) sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

void ReportPipe::send(const nlohmann::json& piece) const {
  using Handler = nlohmann::json::error_handler_t;
  const std::string line = piece.dump(-1, ' ', false, Handler::replace) + "\n";
  write_all(pipe_, line.data(), line.size());
}

void ReportPipe::stage(Stage stage) const { send({{"stage", to_string(stage)}}); }

void report_node_on_signals(int pipe, const graph::Graph& graph) { handle_signals(pipe, graph); }

void print_node_on_signals(const graph::Graph& graph) { handle_signals(kForPeople, graph); }

}  // namespace assay::sandbox
