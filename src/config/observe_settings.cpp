#include "config/observe_settings.h"

#include "config/config.h"
#include "config/push.h"

namespace assay::config {

observe::Settings observe_settings() {
  observe::Settings made;
  made.logs = observe::parse_logs(get<"logs">(), source<"logs">());
  made.format = observe::LogFormat(get<"logs_format">(), source<"logs_format">());
  made.logs_out = get<"logs_out">();
  made.trace = get<"chrome_trace">();
  return made;
}

void push_logs(const std::string& value, std::string_view source) {
  observe::set_logs(value, source);
}

void push_logs_format(const std::string& value, std::string_view source) {
  observe::set_log_output(observe::LogFormat(value, source), get<"logs_out">());
}

void push_logs_out(const std::string& value, std::string_view /*source*/) {
  observe::set_log_output(observe::LogFormat(get<"logs_format">(), source<"logs_format">()), value);
}

void push_trace(const std::string& value, std::string_view /*source*/) {
  if (value.empty()) {
    observe::stop_trace();
  } else {
    observe::start_trace(value);
  }
}

}  // namespace assay::config
