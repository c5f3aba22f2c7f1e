/// \file The settings that the observe room keeps: a change is pushed to it, since it stands below
/// this room and cannot ask. Named by the table in config/settings.h.
#pragma once

#include <string>
#include <string_view>

namespace assay::config {

void push_logs(const std::string& value, std::string_view source);
void push_logs_format(const std::string& value, std::string_view source);
void push_logs_out(const std::string& value, std::string_view source);
void push_trace(const std::string& value, std::string_view source);

}  // namespace assay::config
