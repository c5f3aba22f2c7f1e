#include "repro/debug_log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <utility>

#include "observe/log_format.h"
#include "observe/log_names.h"

namespace assay::repro {

struct DebugLog::Output {
  Output(std::filesystem::path path, Filter wanted)
      : file(std::move(path)), filter(std::move(wanted)) {}

  std::filesystem::path file;
  Filter filter;
  std::mutex mutex;
  std::ofstream stream;

  void write(const observe::Event& event) {
    if (!filter(event)) return;
    const std::string text = observe::LogFormat()(event);
    const std::lock_guard lock(mutex);
    if (!stream.is_open()) {
      std::error_code ignored;  // what cannot be written is not: the program's own work goes on
      std::filesystem::create_directories(file.parent_path(), ignored);
      stream.open(file, std::ios::app);
    }
    stream << text << std::flush;
  }
};

bool belongs_to(const observe::Event& event, observe::Component component) {
  const observe::LogName* name = &observe::log_name(event.channel);
  if (name->off_by_default) return false;
  while (true) {
    if (name->channel == observe::Channel(component)) return true;
    if (name->channel == observe::Channel(name->parent)) return false;
    name = &observe::log_name(name->parent);
  }
}

int this_thread() { return static_cast<int>(::syscall(SYS_gettid)); }

DebugLog::DebugLog(std::filesystem::path file, Filter filter)
    : output_(std::make_shared<Output>(std::move(file), std::move(filter))),
      subscription_(observe::subscribe(
          [output = output_](const observe::Event& event) { output->write(event); })) {}

DebugLog::~DebugLog() = default;

}  // namespace assay::repro
